"""Perceived empathy and session risk: bags, pooling, honest nesting, one formula for the risk."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from models.additive import TURNS, AdditiveRecipe, fit_additive  # noqa: E402
from models.data.listeners import HeardSession, HeardTurn, above_neutral  # noqa: E402
from models.heads import FUSED  # noqa: E402
from models.labels import CLIENT, COUNSELLOR, HEADS, OUTCOME_HEADS  # noqa: E402
from models.listening import (  # noqa: E402
    Bag,
    Fit,
    bags_of,
    fit_heads,
    mean_features,
    pool,
    replies_after,
)
from models.perceived import Outcomes, Share, second_stage, share_of  # noqa: E402
from models.ratings import Fold  # noqa: E402
from models.replay import trajectories  # noqa: E402
from models.resampling import auroc, interval, spearman  # noqa: E402
from models.session_risk import (  # noqa: E402
    RiskRecipe,
    Series,
    alarm_level,
    at_turn,
    collect,
    fired_at,
    operating_point,
    out_of_fold,
    threshold,
)
from models.turn_features import VIEWS, TurnFeatures, turn_features, windows  # noqa: E402
from stream_app.core.risk import log_odds  # noqa: E402
from tests.models.tiny import tiny_model, tiny_tokenizer  # noqa: E402

QUICK = Fit(most=20)


def chat(number: int, source: str = "esconv", turns: int = 12, **ratings: object) -> HeardSession:
    said = [
        HeardTurn(
            CLIENT if i % 2 == 0 else COUNSELLOR,
            " ".join(["i feel sad"] * (1 + (i + number) % 4)),
            feedback=1 + i % 5 if source == "esconv_failed" and i % 4 == 2 else None,
            satisfaction=(3, 4, 2) if source == "sgd" and i % 2 == 0 else (),
        )
        for i in range(turns)
    ]
    return HeardSession(source, f"{source}:{number}", said, **ratings)


def chats() -> list[HeardSession]:
    good = [chat(i, empathy=5, relevance=4, fall=2) for i in range(20)]
    low = [chat(i, "esconv_failed", 6 + i % 3, empathy=1 + i % 2, fall=0) for i in range(10)]
    return [*good, *low, *[chat(i, "sgd") for i in range(4)]]


def starts_of(sessions: list[HeardSession]) -> np.ndarray:
    return np.cumsum([0, *(len(session.turns) for session in sessions)])


def random_features(sessions: list[HeardSession], size: int) -> TurnFeatures:
    starts = starts_of(sessions)
    chance = np.random.default_rng(0)
    fused = {v: chance.normal(size=(int(starts[-1]), size)).astype(np.float16) for v in VIEWS}
    return TurnFeatures(starts, fused, fused[VIEWS[0]])


def test_pooling() -> None:
    log_odds_, bag = torch.tensor([0.0, 2.0, -1.0]), torch.tensor([0, 0, 1])
    assert pool(log_odds_, bag, 2).tolist() == [1.0, -1.0]
    p = [1 / (1 + math.exp(-x)) for x in (0.0, 2.0)]
    mean = pool(log_odds_, bag, 2, "mean_probability").sigmoid()
    assert mean[0].item() == pytest.approx(sum(p) / 2, abs=1e-5)
    either = pool(log_odds_, bag, 2, "noisy_or").sigmoid()
    assert either[0].item() == pytest.approx(1 - (1 - p[0]) * (1 - p[1]), abs=1e-4)
    assert either[1].item() == pytest.approx(1 / (1 + math.e), abs=1e-4)


def test_ratings_go_to_the_heads_that_learn_from_them() -> None:
    sessions = [
        chat(0, empathy=5, relevance=3, fall=-1),
        chat(1, "esconv_failed"),
        chat(2, "sgd"),
        chat(3, "annomi"),
    ]
    bags = bags_of(sessions, starts_of(sessions))
    found = {(bag.session, bag.head, bag.kind) for bag in bags}
    assert (0, "sympathy", "esconv:empathy") in found
    assert (0, "understanding", "esconv:relevance") in found
    assert (1, "satisfaction", "esconv_failed:failed") in found
    assert (1, "helpfulness", "esconv_failed:feedback") in found
    assert not any(session == 1 and head == "sympathy" for session, head, _ in found)
    assert (2, "helpfulness", "sgd:satisfaction") in found
    assert not any(session == 3 for session, _, _ in found)
    well = {bag.session: bag.target for bag in bags if bag.kind.endswith(("empathy", "failed"))}
    assert well == {0: 1.0, 1: 0.0}
    fall = next(bag for bag in bags if bag.kind == "esconv:fall")
    assert (fall.rating, fall.target) == (-1.0, 0.0)
    assert all(0.0 <= bag.target <= 1.0 for bag in bags)


def test_feedback_speaks_of_the_turns_since_the_last() -> None:
    said = [(COUNSELLOR, None)] * 3 + [(CLIENT, 4), (COUNSELLOR, None), (CLIENT, 2), (CLIENT, 1)]
    turns = [HeardTurn(role, "a", feedback=given) for role, given in said]
    session = HeardSession("esconv_failed", "k", turns)
    bags = bags_of([session], starts_of([session]))
    assert [bag.rows for bag in bags if bag.head == "helpfulness"] == [(1, 2), (4,)]


def test_a_service_rating_speaks_of_the_system_turn_before_it() -> None:
    session = chat(0, "sgd", 4)
    bags = [bag for bag in bags_of([session], starts_of([session])) if bag.head == "helpfulness"]
    assert [bag.rows for bag in bags] == [(1,)]
    assert bags[0].target == above_neutral((3, 4, 2)) == 0.5


def test_replies_end_with_the_counsellors_next_turn() -> None:
    said = [
        *((COUNSELLOR, "a"), (CLIENT, "b c"), (CLIENT, "d"), (COUNSELLOR, "e")),
        *((COUNSELLOR, "f"), (CLIENT, "g"), (COUNSELLOR, "h")),
    ]
    session = HeardSession("esconv", "k", [HeardTurn(role, text) for role, text in said])
    assert replies_after(session) == {0: 3, 3: 1, 4: 1, 6: 0}


def test_engagement_never_sees_what_follows() -> None:
    sessions = chats()
    features = random_features(sessions, 8)
    bags = [bag for bag in bags_of(sessions, features.starts) if bag.head == "engagement"]

    def fitted(seen: TurnFeatures) -> list[float]:
        return fit_heads(seen, bags, QUICK, ("engagement",))["engagement"].weights.tolist()

    other = {**features.fused, "final": -features.fused["final"]}
    assert fitted(features) == fitted(TurnFeatures(features.starts, other, features.alone))


def test_multiple_instances_find_the_turn_that_the_rating_is_about() -> None:
    chance = np.random.default_rng(1)
    x = chance.normal(size=(600, 6)).astype(np.float16)
    bags = []
    for number in range(100):
        rows = tuple(range(6 * number, 6 * number + 6))
        target = float(x[list(rows), 0].astype(float).sum() > 0)
        bags.append(Bag("sympathy", "esconv:empathy", rows, target, target, number))
    features = TurnFeatures(np.arange(0, 601, 6), dict.fromkeys(VIEWS, x), x)
    learned = fit_heads(features, bags, Fit(strength=1.0), ("sympathy",))["sympathy"]
    assert spearman(learned.log_odds(x).astype(float), x[:, 0].astype(float)) > 0.9


def test_a_bag_is_the_mean_of_its_turns() -> None:
    """So what is learned of bags holds for turns: the layer of the model says the same."""
    chance = np.random.default_rng(2)
    x = chance.normal(size=(12, 5)).astype(np.float16)
    features = TurnFeatures(np.array([0, 12]), dict.fromkeys(VIEWS, x), x)
    bags = [
        Bag("sympathy", "esconv:empathy", rows, 1.0, target, 0)
        for rows, target in (((0, 1, 2), 0.25), ((3, 4), 1.0), (tuple(range(5, 12)), 0.0))
    ]
    expected = [x[list(bag.rows)].astype(float).mean(0) for bag in bags]
    means = mean_features(features, bags, "final")
    assert means == pytest.approx(np.array(expected), abs=1e-5)
    learned = fit_heads(features, bags, Fit(strength=1.0), ("sympathy",))["sympathy"]
    layer = nn.Linear(5, 2)
    learned.write(layer)
    logits = layer(torch.from_numpy(x).float()).detach().numpy()
    assert logits[:, 1] - logits[:, 0] == pytest.approx(learned.log_odds(x), abs=1e-5)
    assert (learned.log_odds(means)[[1, 0, 2]] == np.sort(learned.log_odds(means))[::-1]).all()


def test_kinds_that_rate_turns_weigh_together_as_much_as_so_many_sessions() -> None:
    """A thousand ratings of turns that all say no do not drown twenty of sessions that say yes."""
    x = np.zeros((1020, 2), np.float16)
    x[:20, 0] = 1.0
    features = TurnFeatures(np.array([0, 1020]), dict.fromkeys(VIEWS, x), x)
    whole = [Bag("helpfulness", "esconv:fall", (i,), 1.0, 1.0, i) for i in range(20)]
    turns = [Bag("helpfulness", "sgd:satisfaction", (i,), 0.0, 0.0, i) for i in range(20, 1020)]
    few, many = (
        fit_heads(features, whole + turns, Fit(most=most), ("helpfulness",))["helpfulness"]
        for most in (20, 1000)
    )
    base = np.zeros((1, 2), np.float32) + 0.5
    assert few.log_odds(base)[0] > many.log_odds(base)[0] + 1.0


def test_windows_end_with_the_session() -> None:
    rows, present = windows(np.array([0, 2, 6]))
    assert present[1].tolist() == [0, 0, 1, 0, 0, 0]
    assert rows[2][3:].tolist() == [3, 4, 5]
    assert present[2].tolist() == [0, 0, 0, 1, 1, 1]


def test_the_share_is_what_the_training_says() -> None:
    assert share_of({"split": "fold 3 of 5", "seed": 1}) == Share(1, 3, 5)
    everything = share_of({"split": "all conversations", "seed": 1})
    assert everything.trains("a")
    assert everything.trains("b")


def test_the_fused_features_are_those_of_the_model(tmp_path) -> None:
    model, tokenizer = tiny_model(), tiny_tokenizer()
    sessions = chats()[:3]
    found = turn_features(model, tokenizer, sessions, tmp_path)
    again = turn_features(model, tokenizer, sessions, tmp_path)
    for view in VIEWS:
        assert np.array_equal(found.fused[view], again.fused[view])
    assert not np.array_equal(found.fused["final"], found.fused["provisional"])


def test_no_outcome_of_a_fold_reaches_what_scores_it() -> None:
    """Other ratings in the fold, and nothing changes but the truth it is measured against."""
    model = tiny_model()
    sessions = chats()
    features = random_features(sessions, FUSED * model.config.hidden_size)
    share = Share(seed=17, fold=0, folds=3)
    other = copy.deepcopy(sessions)
    for session in other:
        if not share.trains(session.key) and session.empathy is not None:
            session.empathy, session.relevance, session.fall = 6 - session.empathy, 1, 4
    assert [s.empathy for s in other] != [s.empathy for s in sessions]
    one = second_stage(copy.deepcopy(model), sessions, features, share, QUICK)
    two = second_stage(copy.deepcopy(model), other, features, share, QUICK)
    for head in OUTCOME_HEADS:
        assert np.array_equal(one.unseen["final"][head], two.unseen["final"][head])
    risks = [
        {
            item.session: item.risk.tolist()
            for item in out_of_fold(collect(known, [Fold(0, share, outcomes)], {}), RiskRecipe())
        }
        for known, outcomes in ((sessions, one), (other, two))
    ]
    assert risks[0] == risks[1]
    assert risks[0]


def test_the_outputs_that_fit_the_risk_are_unseen_for_the_session() -> None:
    model = tiny_model()
    sessions = chats()
    features = random_features(sessions, FUSED * model.config.hidden_size)
    share = Share(seed=17, fold=0, folds=3)
    number = next(i for i, s in enumerate(sessions) if s.empathy == 5 and share.trains(s.key))
    other = copy.deepcopy(sessions)
    other[number].empathy = 1
    one = second_stage(copy.deepcopy(model), sessions, features, share, QUICK)
    two = second_stage(copy.deepcopy(model), other, features, share, QUICK)
    rows = list(features.rows(number))
    for head in ("sympathy", "satisfaction"):
        assert np.array_equal(one.unseen["final"][head][rows], two.unseen["final"][head][rows])
        assert not np.array_equal(one.logits["final"][head], two.logits["final"][head])


def test_outcomes_are_read_as_they_were_written(tmp_path) -> None:
    model = tiny_model()
    sessions = chats()
    features = random_features(sessions, FUSED * model.config.hidden_size)
    found = second_stage(model, sessions, features, Share(17, 0, 3), QUICK)
    found.write(tmp_path / "o.npz")
    again = Outcomes.read(tmp_path / "o.npz")
    assert again.keys == found.keys
    assert set(again.logits["final"]) == {head.name for head in HEADS}
    assert np.array_equal(again.unseen["final"]["sympathy"], found.unseen["final"]["sympathy"])


def test_the_fitted_risk_is_the_one_that_the_service_evaluates() -> None:
    chance = np.random.default_rng(2)
    names = ["a_mean", "b_recent", TURNS]
    x = chance.normal(size=(400, 3))
    x[:, 2] = np.log1p(chance.integers(1, 25, 400))
    y = (x[:, 0] + 0.5 * (x[:, 1] > 0.3) + chance.normal(size=400) > 0.5).astype(float)
    model = fit_additive(x, y, np.ones(400), names, AdditiveRecipe()).scaled(1.3, -0.2)
    shipped = model.risk_model()
    expected = [log_odds(shipped, dict(zip(names, row, strict=True))) for row in x.tolist()]
    assert model.log_odds(x) == pytest.approx(np.array(expected))
    assert auroc(y > 0, model.log_odds(x)) > 0.75


def test_replayed_sessions_have_a_point_for_each_counsellor_turn() -> None:
    model = tiny_model()
    sessions = chats()
    features = random_features(sessions, FUSED * model.config.hidden_size)
    outcomes = second_stage(model, sessions, features, Share(17, 0, 3), QUICK)
    names, found = trajectories(sessions, outcomes.starts, [0, 25], outcomes.logits, {})
    assert [len(item.points) for item in found] == [
        len(sessions[i].positions[COUNSELLOR]) for i in (0, 25)
    ]
    assert {"sympathy_mean", "satisfaction_recent", "client_log_words", TURNS} <= set(names)
    words = [len(sessions[0].turns[i].text.split()) for i in sessions[0].positions[CLIENT]]
    last = found[0].points[-1][names.index("client_log_words")]
    assert last == pytest.approx(math.log1p(sum(words) / len(words)))
    turns = found[0].closing[names.index("client_log_turns")]
    assert turns == pytest.approx(math.log1p(len(words)))


def series(low: bool, *risk: float, closing: float = 0.5) -> Series:
    return Series(0, 0, low, np.array(risk), closing)


def test_an_alarm_needs_consecutive_turns() -> None:
    risk = np.array([0.9, 0.1, 0.6, 0.7, 0.2])
    assert alarm_level(risk, 2) == 0.6
    assert fired_at(risk, 0.6, 2) == 4
    assert fired_at(risk, 0.65, 2) is None
    assert alarm_level(np.array([0.9]), 2) == 0.0


def test_a_session_that_has_ended_counts_with_its_closing_risk() -> None:
    item = series(True, 0.1, 0.2, 0.3, closing=0.6)
    assert [at_turn(item, k) for k in (1, 3, 10, None)] == [0.1, 0.3, 0.6, 0.6]


def test_the_threshold_lets_no_more_than_the_stated_false_alarms_through() -> None:
    good = [series(False, p, p) for p in np.linspace(0, 0.9, 40)]
    bad = [series(True, 0.95, 0.95) for _ in range(5)]
    enter = threshold([*good, *bad], 0.10)
    fired = sum(fired_at(item.risk, enter) is not None for item in good)
    assert fired <= 4
    point = operating_point([*good, *bad], 0.10)
    assert point["detected_per_100_low"] == 100.0
    assert point["median_counsellor_turn_of_detection"] == 2.0


def test_intervals_resample_sessions() -> None:
    chance = np.random.default_rng(3)
    groups = np.repeat(np.arange(40), 5)
    x = chance.normal(size=40)[groups]
    y = x + chance.normal(size=200)
    found = interval(groups, lambda rows: spearman(x[rows], y[rows]), 200)
    assert found["low"] < found["value"] < found["high"]
