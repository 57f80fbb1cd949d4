"""The low-empathy benchmark: sessions, fit of the index, figures and direction."""

from __future__ import annotations

import functools
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from models.construct import benchmark, figures, fit
from models.construct.benchmark import Answer, BenchmarkSessions, Known
from models.construct.fit import CODED, LABELLED, Part, general_answer, motivational_answer
from models.construct.memory import PRIORS, memory_rows
from models.construct.plain import SPANS, plain_means
from models.construct.scoring import Scored
from models.construct.traces import Features, SessionTrace, trace_sessions, turn_features
from models.data.rated_sessions import SERVICE, RatedSession, RatedTurn
from models.data.registry import CORPORA
from models.data.split import fold_of
from models.evaluate.resampling import interval, spearman
from models.fit.turn_features import VIEWS
from models.labels import CLIENT, COUNSELLOR, HEADS, RATIONALE_ORDER
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Expressed, Level, Stage, TurnScore
from stream_app.core.measures.empathy import (
    CLIENT_FEATURES,
    COUNSELLOR_FEATURES,
    AnswerModel,
    EmpathyModel,
)
from tests import fakes
from tests.models.tiny import write_rows

FOLDS, SEED = 2, 17
LENGTHS = (4, 5, 6)


def text_of(key: str, number: int) -> str:
    """A text of one of three lengths; its first word names its origin."""
    return " ".join([key, *["word"] * (LENGTHS[number % 3] - 1)])


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Corpora in which every text contains the key of its conversation."""
    folder = tmp_path_factory.mktemp("corpora")
    pairs = []
    for n in range(360):
        level = {"level": n % 3, "rationales": []}
        row: dict[str, Any] = dict.fromkeys(RATIONALE_ORDER, level)
        row |= {"seeker_post_id": f"{n}", "response_post_id": f"r{n}"}
        row |= {"seeker_post": text_of(f"epitome:{n}", n // 3)}
        pairs.append(row | {"response_post": text_of(f"epitome:{n}", n // 3)})
    write_rows(folder / "epitome_reddit.jsonl.gz", pairs)
    strategies = ("Question", "Providing Suggestions")
    chats = []
    for n in range(30):
        dialog = []
        for i in range(10):
            dialog.append({"speaker": "seeker", "text": text_of(f"esconv:{n}", i)})
            reply = {"speaker": "supporter", "text": text_of(f"esconv:{n}", i)}
            dialog.append(reply | {"strategy": strategies[i % 2]})
        chats.append({"conversation_id": f"{n}", "dialog": dialog})
    for file in CORPORA["esconv"].files:
        write_rows(folder / file, chats if "train" in file else [])
    interviews = []
    for n in range(8):
        utterances = [
            {"speaker": who, "text": text_of(f"annomi:{n}", i), "annotations": []}
            for i in range(10)
            for who in ("client", "therapist")
        ]
        interviews.append(
            {"conversation_id": f"{n}", "utterances": utterances, "mi_quality": "high"}
        )
    write_rows(folder / "annomi.jsonl.gz", interviews)
    for file in CORPORA["service"].files:
        name = file.split(".")[0]
        dialogues = []
        for n in range(16):
            turns = [
                {"speaker": who, "text": text_of(f"service:{name}{n}", i), "satisfaction": []}
                for i in range(5)
                for who in ("user", "system")
            ]
            dialogues.append({"conversation_id": f"{name}{n}", "turns": turns})
        write_rows(folder / file, dialogues)
    rated = []
    for n in range(20):
        key = f"empathetic_exchanges:{n}"
        exchange = {"speaker": text_of(key, n), "listener": text_of(key, n), "empathy": 1 + n % 5}
        rated.append({"conversation_id": f"{n}", "exchanges": [exchange]})
    write_rows(folder / "empathetic_exchanges.jsonl.gz", rated)
    return folder


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use few resamples: the width of the intervals is not tested here."""
    monkeypatch.setattr(figures, "interval", functools.partial(interval, resamples=10))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "COMPOSED_A_FOLD", 12)
    monkeypatch.setattr(benchmark, "OF_EACH_LENGTH_A_FOLD", 2)
    monkeypatch.setattr(benchmark, "CHATS_A_FOLD", 4)
    monkeypatch.setattr(benchmark, "SWAPS_A_FOLD", 3)
    monkeypatch.setattr(benchmark, "SERVICE_A_FOLD", 8)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("fold", range(FOLDS))
def test_all_parts_of_a_session_are_from_one_fold(corpora: Path, fold: int) -> None:
    made = benchmark.build_benchmark(corpora, benchmark.of_fold(fold, FOLDS, SEED), fold, SEED)
    assert len(made.sessions) == len(made.known)
    kinds = Counter(known.kind for known in made.known)
    expected = {"real", "rated", "composed", "lengths", "untouched", "misplaced", "fitting"}
    assert expected | set(benchmark.CHANGES) == set(kinds)
    assert kinds["composed"] == 2 * 12
    assert kinds["misplaced"] == kinds["fitting"] == 2 * 2 * 3
    for session, known in zip(made.sessions, made.known, strict=True):
        assert known.fold == fold
        origins = {turn.text.split()[0] for turn in session.turns}
        assert {fold_of(origin, SEED, FOLDS) for origin in origins} == {fold}
    assert len({session.key for session in made.sessions}) == len(made.sessions)


@pytest.mark.usefixtures("few")
def test_changes_are_as_long_as_their_controls_and_replace_the_same_turns(corpora: Path) -> None:
    made = benchmark.build_benchmark(corpora, benchmark.of_fold(0, FOLDS, SEED), 0, SEED)
    ways: dict[tuple[object, ...], dict[str, RatedSession]] = {}
    untouched = {}
    for session, known in zip(made.sessions, made.known, strict=True):
        if known.kind == "untouched":
            untouched[known.origin] = session
        elif known.onset is not None:
            ways.setdefault((known.origin, known.onset, known.share), {})[known.kind] = session
    gaps = []
    for (origin, onset, share), kinds in ways.items():
        assert set(kinds) == set(benchmark.CHANGES)
        before = untouched[str(origin)]
        spoken = before.positions[COUNSELLOR]
        expected = spoken[cast("int", onset) :: 1 if share == "every" else 2]
        for session in kinds.values():
            changed = [
                place
                for place, (old, new) in enumerate(zip(before.turns, session.turns, strict=True))
                if old.text != new.text
            ]
            # A turn of advice may be replaced by one with the same words of the same chat.
            assert set(changed) <= set(expected)
            for place in expected:
                control = kinds["strong"].turns[place].text
                gaps.append(abs(len(session.turns[place].text.split()) - len(control.split())))
    assert {share for _, _, share in ways} == {"every", "every second"}
    assert max(gaps) <= 1
    assert float(np.mean(gaps)) < 0.1


@pytest.mark.usefixtures("few")
def test_swapped_sessions_have_their_controls_answers_to_other_posts(
    corpora: Path,
) -> None:
    """In this corpus an answer has the words of its post, so that matches are detectable."""
    made = benchmark.build_benchmark(corpora, benchmark.of_fold(0, FOLDS, SEED), 0, SEED)
    swaps: dict[tuple[str, str], dict[str, list[RatedSession]]] = {}
    for session, known in zip(made.sessions, made.known, strict=True):
        if known.kind in ("misplaced", "fitting"):
            key = (known.origin, known.domain)
            swaps.setdefault(key, {}).setdefault(known.kind, []).append(session)
            assert len(known.totals) == benchmark.EXCHANGES
            assert min(known.totals) >= benchmark.STRONG_TOTAL
    assert {domain for _, domain in swaps} == {"peer-support", "counselling"}

    def texts(sessions: list[RatedSession], role: int) -> list[list[str]]:
        return [[s.turns[place].text for place in s.positions[role]] for s in sessions]

    for kinds in swaps.values():
        fitting, other = kinds["fitting"], kinds["misplaced"]
        assert len(fitting) == len(other) == 2
        assert texts(fitting, CLIENT) == texts(other, CLIENT)
        assert texts(fitting, CLIENT) == texts(fitting, COUNSELLOR), "each answers its own post"
        assert texts(other, COUNSELLOR) == texts(fitting, COUNSELLOR)[::-1], "swapped"
        posts = [text for session in texts(fitting, CLIENT) for text in session]
        assert len(set(posts)) == 2 * benchmark.EXCHANGES
        for own, given in zip(*texts(fitting, COUNSELLOR), strict=True):
            assert abs(len(own.split()) - len(given.split())) <= 1


def test_too_few_strong_answers_give_no_swapped_sessions() -> None:
    answers = [(f"post {n}", Answer("so sorry", 3)) for n in range(2 * benchmark.EXCHANGES - 1)]
    more = [*answers, ("post 0", Answer("another answer to the same post", 5))]
    for pairs in (answers, more):
        parts = benchmark.Parts(pairs, [], [], [], [], [])
        assert benchmark.swapped(parts, 0, random.Random(0)).sessions == []


def test_the_answer_nearest_in_length_is_chosen() -> None:
    pool = [Answer(" ".join(["w"] * n)) for n in range(1, 60)]
    chance = random.Random(0)
    assert {benchmark._alike(pool, 30, chance, 3).words for _ in range(50)} == {29, 30, 31}


@pytest.mark.usefixtures("few")
def test_the_sessions_depend_only_on_the_seed(corpora: Path) -> None:
    def texts(seed: int) -> list[tuple[str, ...]]:
        made = benchmark.build_benchmark(corpora, benchmark.of_fold(0, FOLDS, seed), 0, seed)
        return [tuple(turn.text for turn in session.turns) for session in made.sessions]

    assert texts(SEED) == texts(SEED)
    assert texts(SEED) != texts(SEED + 1)


@pytest.mark.usefixtures("few")
def test_composed_sessions_have_labels_and_differ_in_empathy(corpora: Path) -> None:
    made = benchmark.build_benchmark(corpora, benchmark.of_fold(0, FOLDS, SEED), 0, SEED)
    composed = [
        (session, known)
        for session, known in zip(made.sessions, made.known, strict=True)
        if known.kind == "composed"
    ]
    for session, known in composed:
        answers = [session.turns[place].text for place in session.positions[COUNSELLOR]]
        numbers = [int(text.split()[0].split(":")[1]) for text in answers]
        assert known.totals == tuple(3 * (number % 3) for number in numbers)
    means = [np.mean(known.totals) for _, known in composed]
    assert min(means) <= 1.5
    assert max(means) >= 4.5


@pytest.mark.usefixtures("few")
def test_each_length_has_sessions_of_each_group_in_both_domains(corpora: Path) -> None:
    made = benchmark.build_benchmark(corpora, benchmark.of_fold(0, FOLDS, SEED), 0, SEED)
    found = [
        (session, known)
        for session, known in zip(made.sessions, made.known, strict=True)
        if known.kind == "lengths"
    ]
    counted = Counter((k.domain, k.origin, len(s.positions[COUNSELLOR])) for s, k in found)
    assert counted == {
        (domain, group, length): 2
        for domain in benchmark.DOMAINS_COMPOSED
        for group in benchmark.GROUPS
        for length in benchmark.LENGTHS
    }
    for _, known in found:
        assert all(benchmark.GROUPS[known.origin](total) for total in known.totals)


def test_a_group_with_too_few_answers_has_no_long_sessions() -> None:
    pairs = [(f"post {n}", Answer(f"answer {n}", 0)) for n in range(7)]
    parts = benchmark.Parts(pairs, [], [], [], [], [])
    made = benchmark.of_lengths(parts, 0, random.Random(1))
    assert {(k.origin, len(k.totals)) for k in made.known} == {
        (group, length) for group in ("no mechanism", "any") for length in (3, 6)
    }


# The fit, on synthetic features.


def part_of(
    sessions: list[tuple[RatedSession, Known]], values: dict[str, np.ndarray], opportunity: float
) -> Part:
    """A part whose counsellor turns have these features in order; all others are 0."""
    made = BenchmarkSessions()
    for session, known in sessions:
        made.add(session, known)
    starts = np.cumsum([0, *(len(session.turns) for session, _ in sessions)])
    roles = np.array([turn.role for session, _ in sessions for turn in session.turns])
    counsellor = {}
    for name in COUNSELLOR_FEATURES:
        table = np.full(len(roles), np.nan)
        table[roles == COUNSELLOR] = values.get(name, 0.0)
        counsellor[name] = table
    client = {
        name: np.where(roles == CLIENT, opportunity if name == "distress" else 0.0, np.nan)
        for name in CLIENT_FEATURES
    }
    return Part(made, starts, Features(client, counsellor))


def session_of(number: int, exchanges: int, source: Any = "esconv", **about: Any) -> RatedSession:
    turns = [
        RatedTurn(role, f"{role} {number} {i}")
        for i in range(exchanges)
        for role in (CLIENT, COUNSELLOR)
    ]
    return RatedSession(source, f"{source}:{number}", turns, **about)


PLANTED = {"emotional_reactions": 2.0, "interpretations": 1.6, "explorations": 0.8}


def test_answer_weights_have_the_planted_proportions() -> None:
    chance = np.random.default_rng(0)
    sessions, count = 120, 6
    x = {name: chance.random(sessions * count) for name in LABELLED}
    total = sum(weight * x[name] for name, weight in PLANTED.items())
    total = np.clip(np.round(total + chance.normal(0, 0.3, sessions * count)), 0, 6).astype(int)
    composed = [
        (
            session_of(n, count),
            Known("composed", "peer-support", 0, totals=tuple(total[n * count : (n + 1) * count])),
        )
        for n in range(sessions)
    ]
    model, answered = general_answer([part_of(composed, x, 1.0)])
    largest = model.weights["emotional_reactions"]
    for name, weight in PLANTED.items():
        assert model.weights[name] / largest == pytest.approx(weight / 2.0, abs=0.1), name
    answers = model.intercept + sum(w * x[name] for name, w in model.weights.items())
    assert 0.0 < answered < 1.0
    assert np.quantile(answers, 0.01) == pytest.approx(0.0, abs=0.01)
    assert np.quantile(answers, 0.99) == pytest.approx(1.0, abs=0.01)


def test_an_answer_in_two_sessions_is_used_once() -> None:
    twice = [(session_of(1, 3), Known("composed", "peer-support", 0, totals=(0, 3, 6)))] * 2
    part = part_of(twice, {}, 1.0)
    x, total = fit.labelled_answers([part])
    assert x.shape == (3, len(LABELLED))
    assert total.tolist() == [0.0, 3.0, 6.0]


def test_motivational_weights_follow_quality() -> None:
    """Good sessions have more reflections, bad ones more advice; open questions do not differ."""
    chance = np.random.default_rng(1)
    exchanges, sessions = 8, 60
    high = np.repeat(np.arange(sessions) % 4 != 0, exchanges)
    x = {name: chance.random(sessions * exchanges) for name in CODED}
    x["reflection"] = np.clip(0.3 + 0.3 * high + chance.normal(0, 0.1, len(high)), 0, 1)
    x["advice"] = np.clip(0.5 - 0.3 * high + chance.normal(0, 0.1, len(high)), 0, 1)
    real = [
        (
            session_of(n, exchanges, "annomi", quality="high" if n % 4 else "low"),
            Known("real", "counselling", 0),
        )
        for n in range(sessions)
    ]
    model, _ = motivational_answer([part_of(real, x, 1.0)], lambda _: True)
    assert model.weights["reflection"] > 0 > model.weights["advice"]
    assert abs(model.weights["open_question"]) < 0.3 * model.weights["reflection"]


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.6, 0.6), (0.3, 1.0)])
def test_planted_variances_are_recovered_with_any_weights(weights: tuple[float, float]) -> None:
    """Answers of weight w vary by within / sqrt(w), as the posterior of the index assumes."""
    chance = np.random.default_rng(6)
    mean, between, within = 0.52, 0.09, 0.24
    sessions = []
    for _ in range(4000):
        weight = chance.uniform(*weights, chance.integers(4, 9))
        level = chance.normal(mean, between)
        sessions.append((weight, chance.normal(level, within / np.sqrt(weight))))
    found = fit.spreads(sessions)
    assert found == (
        pytest.approx(mean, abs=0.005),
        pytest.approx(between, abs=0.006),
        pytest.approx(within, abs=0.004),
    )


def test_equal_sessions_have_no_variance_between_them() -> None:
    """The means differ less than their noise explains; the square root must not be negative."""
    one = (np.array([1.0, 1.0]), np.array([0.2, 0.8]))
    assert fit.spreads([one, one, one])[1] == 0.0


@pytest.mark.parametrize("opportunity", [1.0, 0.0])
def test_a_planted_reference_is_recovered(opportunity: float) -> None:
    """Variances above their minimum, with full weights and with the weight without opportunity."""
    chance = np.random.default_rng(2)
    sessions, exchanges, mean, between, within = 400, 10, 0.5, 0.25, 0.3
    weight = fit.FLOOR + (1 - fit.FLOOR) * opportunity
    level = np.clip(chance.normal(mean, between, sessions), 0.05, 0.95)
    answers = chance.normal(np.repeat(level, exchanges), within / weight**0.5)
    real = [(session_of(n, exchanges), Known("real", "peer-support", 0)) for n in range(sessions)]
    part = part_of(real, {"reflection": answers}, opportunity)
    # Half of the answer, so that no value is clipped at 0 or 1.
    answer = AnswerModel(0.25, {"reflection": 0.5})
    found = fit.reference("peer-support", answer, 0.5, [part], lambda _, known: known.fold == 0)
    assert found.mean == pytest.approx(mean, abs=0.02)
    assert (found.between, found.within) == (fit.SPREAD, fit.NOISE), "the minimum values"
    lowest, highest = found.quantiles[0], found.quantiles[-1]
    assert found.quantiles == sorted(found.quantiles)
    assert found.low == pytest.approx(found.quantiles[2])
    assert lowest < found.low < highest
    share = float(np.mean(0.25 + 0.5 * answers >= 0.5)) if opportunity else 0.0
    assert found.answered_share == pytest.approx(share, abs=1e-3)


# The figures.


def watched(risks: list[float], places: list[int] | None = None, **known: Any) -> SessionTrace:
    about = Known(**{"kind": "strong", "domain": "peer-support", "fold": 0, "onset": 0} | known)
    end = SimpleNamespace(low_empathy_risk=risks[-1] if risks else None, empathy_index=0.5, turns=9)
    places = list(range(len(risks))) if places is None else places
    return SessionTrace(0, about, "esconv", tuple(places), tuple(risks), cast("Any", end), 90)


def test_the_rule_fires_at_the_second_risk_in_a_row() -> None:
    assert figures.fired_at([0.9, 0.2, 0.9, 0.8, 0.9], 0.8) == 3
    assert figures.fired_at([0.9, 0.2, 0.9, 0.2], 0.8) is None
    assert figures.fired_at([0.8, 0.8], 0.8) == 1
    assert figures.fired_at([0.9], 0.8) is None
    assert figures.fired_at([], 0.8) is None


def test_at_most_one_control_in_twenty_fires_at_the_threshold() -> None:
    chance = np.random.default_rng(3)
    for number in (20, 45, 200):
        controls = [watched(chance.random(8).tolist()) for _ in range(number)]
        enter = figures.threshold(controls)

        def share(level: float, found: list[SessionTrace] = controls) -> float:
            fired = [figures.fired_at(w.risks, level) is not None for w in found]
            return float(np.mean(fired))

        assert share(enter) <= figures.FALSE_ALARMS < share(np.nextafter(enter, 0.0))


def test_risks_before_the_onset_are_not_false_alarms() -> None:
    before = [watched([0.9, 0.9, 0.1, 0.1], onset=2) for _ in range(20)]
    assert figures.threshold(before) == pytest.approx(0.1)


def test_the_risk_after_some_turns_is_the_last_known_one() -> None:
    w = watched([0.3, 0.5, 0.7], places=[1, 2, 4])
    assert [w.risk_after(n) for n in range(6)] == [None, None, 0.3, 0.5, 0.5, 0.7]


def test_a_variable_that_acts_through_the_index_has_no_partial_correlation() -> None:
    chance = np.random.default_rng(4)
    index, one, other = chance.normal(size=(3, 4000))
    words, risk = index + 0.5 * one, -index + 0.5 * other
    assert spearman(risk, words) < -0.7
    assert abs(figures.partial(risk, words, [index])) < 0.05
    assert figures.partial(risk + 0.5 * one, words, [index]) > 0.3
    assert np.isnan(figures.partial(np.ones(4000), words, [index]))


@pytest.mark.usefixtures("quick")
def test_degraded_sessions_are_compared_with_their_controls() -> None:
    found = []
    for number in range(6):
        own = {"origin": f"esconv:{number}"}
        found.append(watched([0.1, 0.1, 0.1, 0.3], kind="untouched", onset=None, **own))
        found.append(watched([0.1, 0.1, 0.2, 0.2], onset=3, **own))
        found.append(watched([0.1, 0.1, 0.9, 0.8], kind="none", onset=3, **own))
    [row, against] = figures.degraded(found, "peer-support")
    assert (row["onset"], row["share"], row["sessions"]) == ("half", "every", 6)
    assert (row["changed"], row["control"]) == ("none", "strong")
    assert row["end"]["value"] == row["soon"]["value"] == 1.0
    assert against["control"] == "untouched"
    assert figures.degraded(found, "counselling") == []


def of_means(means: list[float], **known: Any) -> SessionTrace:
    """A session with these plain means after each turn and at the end, for all window lengths."""
    plain = [dict.fromkeys(SPANS, value) for value in (*means, means[-1])]
    return replace(watched([0.5] * len(means), **known), plain=tuple(plain))


@pytest.mark.usefixtures("quick")
def test_a_low_plain_mean_counts_as_low_empathy() -> None:
    """The risk is uninformative; the mean after three turns is correct, that after six is not."""
    found = []
    for n in range(8):
        w = of_means([0.0, 0.0, float(n), 0.0, 0.0, 9.0 - n], kind="composed", onset=None)
        found.append(replace(w, known=replace(w.known, totals=(n,))))
    low = figures.by_plain_mean("last five")
    rows = figures.composed(found, "peer-support", low)
    assert rows["auroc_after_three"]["value"] == 1.0
    assert rows["auroc_after_six"]["value"] == 0.0
    assert rows["spearman"]["value"] == pytest.approx(-1.0)
    assert figures.composed(found, "peer-support")["auroc_after_three"]["value"] == 0.5


@pytest.mark.usefixtures("quick")
def test_plain_means_are_measured_on_degraded_sessions_and_on_length() -> None:
    found = []
    for number in range(6):
        own = {"origin": f"esconv:{number}"}
        found.append(of_means([3.0] * 6, kind="untouched", onset=None, **own))
        found.append(of_means([3.0] * 6, onset=2, **own))
        found.append(of_means([3.0, 3.0, 3.0, 3.0, 1.0, 4.0], kind="none", onset=2, **own))
    [strong, untouched] = figures.degraded(
        found, "peer-support", figures.by_plain_mean("last five")
    )
    for row in (strong, untouched):
        assert row["soon"]["value"] == 1.0, "three turns after the onset"
        assert row["end"]["value"] == 0.0
    chance = np.random.default_rng(7)
    real = []
    for n in range(40):
        w = of_means([float(n)] * 3, kind="real", onset=None)
        end = SimpleNamespace(low_empathy_risk=0.5, empathy_index=chance.random(), turns=n)
        real.append(replace(w, end=cast("Any", end), words=10 * n))
    rows = figures.confounds(real, "peer-support", figures.by_plain_mean("all turns"))
    assert rows["turns"]["alone"] == pytest.approx(-1.0)
    assert rows["turns"]["given_the_index"]["value"] == pytest.approx(-1.0)


@pytest.mark.usefixtures("quick")
def test_more_evidence_shows_as_a_risk_that_moves_away_from_the_middle() -> None:
    found = []
    for length in benchmark.LENGTHS:
        for group, risk in (("no mechanism", 0.5 + length / 30), ("strong", 0.5 - length / 30)):
            about = {"kind": "lengths", "onset": None, "origin": group, "totals": (0,) * length}
            found += [watched([risk], **about) for _ in range(4)]
    rows = figures.lengths(found, "peer-support")
    assert list(rows) == ["no mechanism", "strong"]
    assert rows["no mechanism"]["sessions"] == 12
    assert rows["no mechanism"]["mean"] == pytest.approx({"3": 0.6, "6": 0.7, "12": 0.9})
    assert rows["no mechanism"]["spearman"]["value"] == pytest.approx(1.0)
    assert rows["strong"]["spearman"]["value"] == pytest.approx(-1.0)
    assert figures.lengths(found, "counselling") == {}


@pytest.mark.usefixtures("quick")
def test_swapped_sessions_are_distinguished_from_their_controls() -> None:
    found = []
    for number in range(6):
        own = {"origin": f"swap:{number}", "onset": None}
        for _ in range(2):
            found.append(watched([0.1, 0.1, 0.9, 0.9, 0.9, 0.2], kind="misplaced", **own))
            found.append(watched([0.1, 0.1, 0.2, 0.2, 0.2, 0.2], kind="fitting", **own))
    row = figures.misplaced(found, "peer-support")
    assert row["sessions"] == 12
    assert row["after_three"]["value"] == 1.0
    assert row["after_six"]["value"] == 0.5
    nothing = figures.misplaced(found, "counselling")
    assert nothing["sessions"] == 0
    assert np.isnan(nothing["after_six"]["value"])


def test_plain_means_use_only_turns_up_to_each_turn() -> None:
    """A final score replaces the provisional one from its time on::

    turn   1p  3p  1f  5p  3f  5f
    total   0   6   3   6   0   3
    """

    def score(seq: int, total: int) -> TurnScore:
        levels = [min(2, max(0, total - 2 * place)) for place in range(3)]
        given = {
            name: Level(level, [float(level == at) for at in range(3)], [])
            for name, level in zip(RATIONALE_ORDER, levels, strict=True)
        }
        return fakes.scored(Role.COUNSELLOR, seq, expressed=Expressed(**given))

    heard = fakes.scored(Role.CLIENT, 2)
    scores = [score(1, 0), heard, score(3, 6), score(1, 3), score(5, 6), score(3, 0), score(5, 3)]
    assert [means["all turns"] for means in plain_means(scores)] == [0.0, 3.0, 5.0, 2.0]
    later = [score(1 + 2 * n, n) for n in range(7)]
    last = plain_means(later)[-1]
    assert last == {"all turns": 3.0, "last five": 4.0, "last three": 5.0}
    assert plain_means([heard]) == ()


# The direction: exact human labels through fit and service.


def exact(sessions: list[RatedSession], totals: list[list[int]]) -> Scored:
    """Scores with certain levels of these totals, and certain distress in every client turn."""
    starts = np.cumsum([0, *(len(session.turns) for session in sessions)])
    levels = iter([total for of_session in totals for total in of_session])
    rows = {head.name: np.zeros((starts[-1], len(head.labels)), np.float32) for head in HEADS}
    row = 0
    for session in sessions:
        for turn in session.turns:
            if turn.role == COUNSELLOR:
                left = next(levels)
                for name in RATIONALE_ORDER:
                    level = min(2, left)
                    left -= level
                    rows[name][row, level] = 12.0
                for name in ("question", "reflection", "input"):
                    rows[name][row, 0] = 12.0
            row += 1
    return Scored(starts, dict.fromkeys(VIEWS, rows), np.full(starts[-1], 0.9, np.float32))


@pytest.mark.usefixtures("quick")
def test_a_shorter_memory_notices_a_drop_sooner_and_ranks_steady_sessions_worse() -> None:
    chance = np.random.default_rng(6)
    made, totals = BenchmarkSessions(), []

    def add(number: int, given: list[int], **known: Any) -> None:
        made.add(session_of(number, len(given)), Known(domain="peer-support", fold=0, **known))
        totals.append(given)

    for number in range(60):
        given = drawn(chance, benchmark.EXCHANGES)
        add(number, given, kind="composed", totals=tuple(given))
        add(number, drawn(chance, 10), kind="real", origin=f"real:{number}")
    for number in range(20):
        own: dict[str, Any] = {"origin": f"chat:{number}"}
        good = chance.integers(3, 7, 6).tolist()
        add(number, good + chance.integers(2, 7, 6).tolist(), kind="untouched", **own)
        own["onset"] = 6
        add(number, good + chance.integers(3, 7, 6).tolist(), kind="strong", **own)
        for kind in ("none", "task", "advice"):
            add(number, good + chance.integers(0, 3, 6).tolist(), kind=kind, **own)
    scored = exact(made.sessions, totals)
    features = turn_features(made, scored, {}, Stage.FINAL)
    part = Part(made, scored.starts, features)
    answer, _ = general_answer([part])
    usual = fit.reference(
        "peer-support", answer, 0.35, [part], lambda _, known: known.kind == "real"
    )
    model = EmpathyModel({"peer-support": usual}, {}, "peer-support", 0.03, 2, 0.3, 0.2)
    rows = memory_rows(made, scored, {}, model)
    assert [row["prior"] for row in rows] == [*PRIORS, *[None] * len(SPANS)]
    assert [row["prior"] for row in rows if row["shipped"]] == [0.03]
    long, short = rows[0], rows[len(PRIORS) - 1]
    assert short["none_v_strong_soon"]["value"] >= long["none_v_strong_soon"]["value"]
    assert short["composed"]["value"] < long["composed"]["value"]
    assert all(row["alerts"]["strong"] <= 5 for row in rows)
    by_span = {row["memory"]: row for row in rows[len(PRIORS) :]}
    assert by_span["all turns"]["composed"]["value"] > by_span["last three"]["composed"]["value"]


def drawn(chance: np.random.Generator, count: int) -> list[int]:
    """Totals of a session with more or less empathy."""
    weight = np.exp(chance.uniform(-benchmark.LEAN, benchmark.LEAN) * np.arange(7))
    return chance.choice(7, count, p=weight / weight.sum()).tolist()


@pytest.mark.usefixtures("quick")
def test_the_risk_falls_with_labelled_empathy() -> None:
    chance = np.random.default_rng(5)
    made, totals = BenchmarkSessions(), []
    domains = ("peer-support", "counselling")
    for number in range(80):
        given = drawn(chance, benchmark.EXCHANGES)
        for domain in domains:
            session = session_of(number, benchmark.EXCHANGES)
            session.key = f"composed:{number}:{domain}"
            made.add(session, Known("composed", domain, 0, totals=tuple(given)))
            totals.append(given)
    sources = ("esconv", "annomi", *SERVICE)
    for number in range(150):
        source = sources[number % len(sources)]
        quality = "low" if number % 5 == 0 else "high"
        session = session_of(number, 10, source, quality=quality if source == "annomi" else None)
        made.add(session, Known("real", benchmark.DOMAINS[source], 0, session.key))
        totals.append(drawn(chance, 10))
    scored = exact(made.sessions, totals)
    features = turn_features(made, scored, {}, Stage.FINAL)
    model = fit.fit([Part(made, scored.starts, features)], 0.5, 0.4)
    weights = model.domains["peer-support"].answer.weights
    assert all(weights[name] > 0 for name in RATIONALE_ORDER)
    chosen = [i for i, known in enumerate(made.known) if known.kind == "composed"]
    seen = trace_sessions(made, scored, {}, model, chosen)
    for domain in domains:
        own = [w for w in seen if w.known.domain == domain]
        truth = np.array([np.mean(w.known.totals) for w in own])
        risk = np.array([w.risk_after(benchmark.EXCHANGES) for w in own], float)
        index = np.array([w.end.empathy_index for w in own], float)
        assert spearman(-risk, truth) > 0.95
        assert spearman(index, truth) > 0.95
        found = figures.composed(seen, domain)
        assert found["auroc_after_six"]["value"] > 0.97
        assert found["auroc_after_three"]["value"] > 0.85
        assert len(own[0].plain) == benchmark.EXCHANGES + 1
        plain = figures.composed(seen, domain, figures.by_plain_mean("all turns"))
        assert plain["spearman"]["value"] > 0.99, "the true value is this mean"
