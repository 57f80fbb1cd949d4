"""Perceived empathy and outcome risks: bags, pooling, nested folds, the service's formula."""

from __future__ import annotations

import copy
import json
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from models.data.rated_sessions import RatedSession, RatedTurn, above_neutral  # noqa: E402
from models.evaluate.ratings import Fold  # noqa: E402
from models.evaluate.replay import trajectories  # noqa: E402
from models.evaluate.resampling import auroc, interval, spearman  # noqa: E402
from models.fit.perceived import Outcomes, Share, second_stage, share_of  # noqa: E402
from models.fit.turn_features import VIEWS, TurnFeatures, turn_features, windows  # noqa: E402
from models.labels import CLIENT, COUNSELLOR, HEADS, OUTCOME_HEADS  # noqa: E402
from models.model.heads import FUSED  # noqa: E402
from models.model.multiple_instance import (  # noqa: E402
    Bag,
    Fit,
    bags_of,
    fit_heads,
    mean_features,
    pool,
    replies_after,
)
from models.outcomes import evaluation  # noqa: E402
from models.outcomes import folds as outcome_folds  # noqa: E402
from models.outcomes.evaluation import (  # noqa: E402
    closing_scores,
    out_of_fold,
    report,
    shipped,
    topics_held_out,
)
from models.outcomes.family import (  # noqa: E402
    CLOSING,
    TURNS,
    Points,
    Recipe,
    fit_calibrated,
    fit_family,
    platt,
    usable,
)
from models.outcomes.folds import collect  # noqa: E402
from models.outcomes.labels import SPECS, slices  # noqa: E402
from models.outcomes.measure import equally_long, paired_auroc  # noqa: E402
from models.pages.outcomes import outcomes_section  # noqa: E402
from stream_app.core.measures.outcomes import log_odds  # noqa: E402
from tests.models.tiny import tiny_model, tiny_tokenizer  # noqa: E402

QUICK = Fit(most=20)


def chat(number: int, source: str = "esconv", turns: int = 12, **ratings: object) -> RatedSession:
    said = [
        RatedTurn(
            CLIENT if i % 2 == 0 else COUNSELLOR,
            " ".join(["i feel sad"] * (1 + (i + number) % 4)),
            feedback=1 + i % 5 if source == "esconv_failed" and i % 4 == 2 else None,
            satisfaction=(3, 4, 2) if source == "sgd" and i % 2 == 0 else (),
        )
        for i in range(turns)
    ]
    return RatedSession(source, f"{source}:{number}", said, **ratings)


def chats() -> list[RatedSession]:
    good = [chat(i, empathy=5, relevance=4, fall=2) for i in range(20)]
    low = [chat(i, "esconv_failed", 6 + i % 3, empathy=1 + i % 2, fall=0) for i in range(10)]
    return [*good, *low, *[chat(i, "sgd") for i in range(4)]]


def starts_of(sessions: list[RatedSession]) -> np.ndarray:
    return np.cumsum([0, *(len(session.turns) for session in sessions)])


def random_features(sessions: list[RatedSession], size: int) -> TurnFeatures:
    starts = starts_of(sessions)
    chance = np.random.default_rng(0)
    fused = {v: chance.normal(size=(int(starts[-1]), size)).astype(np.float16) for v in VIEWS}
    return TurnFeatures(starts, fused, fused[VIEWS[0]])


def test_pooling_of_turns() -> None:
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


def test_feedback_covers_the_turns_since_the_last_one() -> None:
    said = [(COUNSELLOR, None)] * 3 + [(CLIENT, 4), (COUNSELLOR, None), (CLIENT, 2), (CLIENT, 1)]
    turns = [RatedTurn(role, "a", feedback=given) for role, given in said]
    session = RatedSession("esconv_failed", "k", turns)
    bags = bags_of([session], starts_of([session]))
    assert [bag.rows for bag in bags if bag.head == "helpfulness"] == [(1, 2), (4,)]


def test_a_service_rating_is_about_the_preceding_system_turn() -> None:
    session = chat(0, "sgd", 4)
    bags = [bag for bag in bags_of([session], starts_of([session])) if bag.head == "helpfulness"]
    assert [bag.rows for bag in bags] == [(1,)]
    assert bags[0].target == above_neutral((3, 4, 2)) == 0.5


def test_replies_end_with_the_counsellors_next_turn() -> None:
    said = [
        *((COUNSELLOR, "a"), (CLIENT, "b c"), (CLIENT, "d"), (COUNSELLOR, "e")),
        *((COUNSELLOR, "f"), (CLIENT, "g"), (COUNSELLOR, "h")),
    ]
    session = RatedSession("esconv", "k", [RatedTurn(role, text) for role, text in said])
    assert replies_after(session) == {0: 3, 3: 1, 4: 1, 6: 0}


def test_engagement_never_uses_following_turns() -> None:
    sessions = chats()
    features = random_features(sessions, 8)
    bags = [bag for bag in bags_of(sessions, features.starts) if bag.head == "engagement"]

    def fitted(seen: TurnFeatures) -> list[float]:
        return fit_heads(seen, bags, QUICK, ("engagement",))["engagement"].weights.tolist()

    other = {**features.fused, "final": -features.fused["final"]}
    assert fitted(features) == fitted(TurnFeatures(features.starts, other, features.alone))


def test_multiple_instance_learning_finds_the_rated_turn() -> None:
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
    """So weights learned from bags apply to turns: the model's layer gives the same result."""
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


def test_turn_ratings_have_the_total_weight_of_sessions() -> None:
    """A thousand negative turn ratings do not outweigh twenty positive session ratings."""
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


def test_the_share_is_the_one_of_the_training() -> None:
    assert share_of({"split": "fold 3 of 5", "seed": 1}) == Share(1, 3, 5)
    everything = share_of({"split": "all conversations", "seed": 1})
    assert everything.trains("a")
    assert everything.trains("b")


def test_the_fused_features_equal_the_models(tmp_path) -> None:
    model, tokenizer = tiny_model(), tiny_tokenizer()
    sessions = chats()[:3]
    found = turn_features(model, tokenizer, sessions, tmp_path)
    again = turn_features(model, tokenizer, sessions, tmp_path)
    for view in VIEWS:
        assert np.array_equal(found.fused[view], again.fused[view])
    assert not np.array_equal(found.fused["final"], found.fused["provisional"])


def test_no_outcome_of_a_fold_trains_its_scorer() -> None:
    """Other ratings in the fold change only the labels that it is evaluated with."""
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
            i: (item.running.tolist(), item.closing)
            for i, item in out_of_fold(collect(known, [Fold(0, share, outcomes)], {}), known)[
                "chat_failed"
            ].items()
        }
        for known, outcomes in ((sessions, one), (other, two))
    ]
    assert risks[0] == risks[1]
    assert risks[0]


def test_models_are_fitted_on_outputs_for_unseen_sessions() -> None:
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


def test_outcomes_round_trip_through_files(tmp_path) -> None:
    model = tiny_model()
    sessions = chats()
    features = random_features(sessions, FUSED * model.config.hidden_size)
    found = second_stage(model, sessions, features, Share(17, 0, 3), QUICK)
    found.write(tmp_path / "o.npz")
    again = Outcomes.read(tmp_path / "o.npz")
    assert again.keys == found.keys
    assert set(again.logits["final"]) == {head.name for head in HEADS}
    assert np.array_equal(again.unseen["final"]["sympathy"], found.unseen["final"]["sympathy"])


CHAT_FAILED, LOW_SATISFACTION, LOW_MI_QUALITY = SPECS
NAMES = ["conduct.a", "b_recent", "constant", TURNS]


def points(seed: int, sign: float = 1.0, n: int = 400) -> Points:
    """The first feature predicts the outcome, or, with the other sign, its absence."""
    chance = np.random.default_rng(seed)
    x = chance.normal(size=(n, 4))
    x[:, 2] = 1.0
    x[:, 3] = np.log1p(chance.integers(1, 25, n))
    y = sign * x[:, 0] + 0.5 * (x[:, 1] > 0.3) + chance.normal(size=n) > 0.5
    groups = np.array([f"{seed}:{i}" for i in range(n)])
    return Points(x, x[:, 3], y, np.ones(n), groups)


@pytest.mark.parametrize("recipe", [Recipe(), CLOSING, Recipe(shared=False)])
def test_the_fitted_model_equals_the_services(recipe: Recipe) -> None:
    known = {"chat_failed": points(2), "low_mi_quality": points(3, -1.0)}
    fitted = fit_calibrated(known, NAMES, recipe)
    for spec in (CHAT_FAILED, LOW_MI_QUALITY):
        part, model = known[spec.name], fitted[spec.name]
        found = model.log_odds(part.x[:, :3], part.turns)
        bundled = model.outcome_model(spec)
        expected = [log_odds(bundled, dict(zip(NAMES, row, strict=True))) for row in part.x]
        assert found == pytest.approx(np.array(expected))
        assert auroc(part.y, found) > 0.75
        assert (bundled.domain, bundled.approach) == (spec.domain, spec.approach)
        assert "constant" not in bundled.weights


def test_a_domain_may_reverse_a_shared_weight() -> None:
    known = {"chat_failed": points(2), "low_satisfaction": points(4), "it": points(3, -1.0)}
    fitted = fit_family(known, NAMES, CLOSING)
    assert [np.sign(model.weights[0]) for model in fitted.values()] == [1.0, 1.0, -1.0]


def test_a_domain_with_few_sessions_shrinks_towards_the_others() -> None:
    few = points(5, n=16)
    test = points(6, n=1000)

    def found(recipe: Recipe) -> float:
        known = {"chat_failed": points(2), "it": few}
        model = fit_family(known, NAMES, recipe)["it"]
        return auroc(test.y, model.log_odds(test.x[:, :3], test.turns))

    assert found(CLOSING) >= found(Recipe(varying=False, shared=False)) - 0.005
    assert found(CLOSING) > 0.75


def test_an_outcome_with_one_class_only_has_no_model() -> None:
    one = points(3)
    known = {"chat_failed": points(2), "it": one.where(one.y)}
    assert fit_calibrated(known, NAMES, CLOSING).keys() == {"chat_failed"}


def test_calibration_never_reverses_a_risk() -> None:
    y = np.array([True, False] * 20)
    slope, offset = platt(np.where(y, -1.0, 1.0), y, np.ones(40))
    assert slope == 0.0
    assert offset == pytest.approx(0.0, abs=1e-9)
    slope, _ = platt(np.where(y, 1.0, -1.0), y, np.ones(40))
    assert 1.0 < slope < 10.0


def test_no_count_of_turns_is_an_input() -> None:
    assert not any(map(usable, (TURNS, "client_log_turns", "questions_per_turn")))
    assert usable("conduct.open_share")
    assert usable("expected.explorations_mean")


def test_labels_come_from_explicit_judgements() -> None:
    truth = [
        CHAT_FAILED.truth(chat(0, "esconv_failed", empathy=5)),
        *(CHAT_FAILED.truth(chat(0, empathy=given)) for given in (5, 4, 3, 1, None)),
        CHAT_FAILED.truth(chat(0, "annomi", quality="low")),
        LOW_SATISFACTION.truth(chat(0, "sgd", overall=(2, 3, 3))),
        LOW_SATISFACTION.truth(chat(0, "sgd", overall=(3, 3, 3))),
        LOW_SATISFACTION.truth(chat(0, "sgd")),
        LOW_MI_QUALITY.truth(chat(0, "annomi", quality="low")),
        LOW_MI_QUALITY.truth(chat(0, "annomi", quality="high")),
    ]
    assert truth == [True, False, False, None, None, None, None, True, False, None, True, False]


def test_within_a_file_ratings_are_compared() -> None:
    sessions = [
        *(chat(0, "esconv_failed", empathy=given) for given in (1, 5, None)),
        *(chat(0, empathy=given) for given in (2, 3, 4)),
    ]
    failed, ordinary, both_good = slices(CHAT_FAILED, sessions)
    assert failed.truth == {0: True, 1: False}
    assert ordinary.truth == {3: True, 5: False}
    assert both_good.truth == {1: True, 5: False}


def test_equal_length_is_a_tenth_of_the_longer() -> None:
    truth, turns = np.array([True, False, False]), np.array([20, 18, 17])
    allowed = equally_long(truth, turns)
    assert allowed.tolist() == [[True, False]]
    found = paired_auroc(truth, np.array([0.5, 0.9, 0.1]), allowed)
    assert (found["value"], found["pairs"]) == (0.0, 1)


def three_domains() -> list[RatedSession]:
    service = [chat(i, "sgd", overall=(1 + 3 * (i % 2),)) for i in range(20)]
    interviews = [
        chat(i, "annomi", quality="low" if i % 3 == 0 else "high", topic=f"t{i % 7}")
        for i in range(21)
    ]
    return [*chats()[:30], *service, *interviews]


def fold_models(sessions: list[RatedSession], folds: int = 2) -> list[Fold]:
    features = random_features(sessions, FUSED * tiny_model().config.hidden_size)
    found = []
    for k in range(folds):
        share = Share(seed=17, fold=k, folds=folds)
        found.append(Fold(k, share, second_stage(tiny_model(), sessions, features, share, QUICK)))
    return found


def test_a_folds_outputs_for_a_session_were_not_trained_on_it() -> None:
    sessions = three_domains()
    folds = fold_models(sessions)
    folds[1].outcomes.logits["final"]["reflection"] += 1.0
    own = collect(sessions, folds, {}).own
    seen = outcome_folds.outputs(folds[0], folds, own)["final"]
    for i in range(len(sessions)):
        rows = range(*folds[0].outcomes.starts[i : i + 2])
        codes = folds[own[i]].outcomes.logits["final"]["reflection"][rows]
        assert np.array_equal(seen["reflection"][rows], codes)
        heard = folds[0].outcomes.unseen["final"]["helpfulness"][rows]
        assert np.array_equal(seen["helpfulness"][rows], heard)


def test_all_outcomes_are_measured_and_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "REPEATS", 1)
    sessions = three_domains()
    folds = fold_models(sessions)
    found = collect(sessions, folds, {})
    figures = report(found, sessions, ablations=False)
    assert figures["outcomes"].keys() == {spec.name for spec in SPECS}
    for own in figures["outcomes"].values():
        assert 0.0 <= own["auroc"]["value"] <= 1.0
        assert own["positive"] < own["sessions"] == own["calibration"]["sessions"]
        assert any(name.startswith("tf-idf") for name in own["beside"])
    text = outcomes_section(json.loads(json.dumps(figures)))
    assert "within the failed file, rated 1-2 against 4-5" in text
    assert "pairs of one topic" in text
    assert len(topics_held_out(found)) == 21
    assert closing_scores(found, sessions, CLOSING)["low_mi_quality"] == topics_held_out(found)
    running, ended = shipped(found)
    assert running.keys() == ended.keys() == {spec.name for spec in SPECS}


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


def test_intervals_resample_sessions() -> None:
    chance = np.random.default_rng(3)
    groups = np.repeat(np.arange(40), 5)
    x = chance.normal(size=40)[groups]
    y = x + chance.normal(size=200)
    found = interval(groups, lambda rows: spearman(x[rows], y[rows]), 200)
    assert found["low"] < found["value"] < found["high"]
