"""Conditions on a session: absent values are unknown, and evaluation is cheap."""

import time
from datetime import timedelta

import pytest
from msgspec import structs

from stream_app.contracts.events import Role
from stream_app.core.measures.aggregates import MILLION, Aggregates, Contribution
from stream_app.core.measures.baselines import Baseline, Pinned, Usual
from stream_app.core.measures.watch import Facts, Watch
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.rules import conditions
from stream_app.core.rules.variable_words import in_words
from stream_app.core.rules.variables import CATALOGUE, OLD_NAMES, Kind, Reading
from stream_app.core.session.environment import Policy
from stream_app.core.session.session_state import Versioned
from tests.fakes import START, FakeScorer, received, turn
from tests.rule_texts import SHIPPED

EMPTY = Reading(Aggregates(), Watch(), Facts(), None, None, None)
TYPES = {Kind.NUMBER: float, Kind.COUNT: int, Kind.FLAG: bool, Kind.WORD: str}
SCORER = FakeScorer()


def after(log: list[bytes], facts: Facts | None = None) -> Reading:
    """The rules' view of a session after a log."""
    states: dict[str, Versioned] = {}
    Pipeline(SCORER, Policy(WindowPolicy())).process(received(log), states)
    state = states["s"].state
    chosen = facts or state.facts
    clock = state.watch.clock
    return Reading(
        state.aggregates,
        state.watch,
        chosen,
        state.risk,
        SCORER.empathy,
        clock,
        state.exchanges,
        state.outcomes,
    )


LONG = after([turn(seq=seq, team="west") for seq in range(31)])


def holds(source: str, reading: Reading) -> bool | None:
    return conditions.holds(conditions.condition(source), reading)


def value(source: str, reading: Reading) -> float | None:
    return conditions.evaluate(conditions.number(source), reading)


def test_a_number_that_is_not_finite_is_not_known() -> None:
    infinite = Reading(Aggregates(), Watch(), Facts(), 0.0, None, None)
    assert value("1.0 / risk", infinite) is None
    assert value("risk / risk", infinite) is None


def test_the_rise_of_the_risk_is_over_three_counsellor_turns() -> None:
    watch = Watch()
    found = []
    for risk in (0.1, 0.2, 0.4, 0.7, 0.9):
        watch.note_risk(risk)
        reading = Reading(Aggregates(), watch, Facts(), risk, None, None)
        found.append(value("risk_rise", reading))
    assert found == [None, None, None, pytest.approx(0.6), pytest.approx(0.7)]


def test_every_variable_has_its_type_or_is_absent() -> None:
    usual = Usual(20, 0.3, 0.1)
    pinned = Pinned(Baseline(usual, usual, usual), Baseline(usual, usual, usual), True)
    facts = Facts("peer-support", "chat", "w", pinned)
    known = after([turn(seq=seq, domain="peer-support") for seq in range(31)], facts)
    for reading in (EMPTY, LONG, known):
        for name, variable in CATALOGUE.items():
            found = reading.value(name)
            assert found is None or type(found) is TYPES[variable.kind], name
            if variable.absent == "never":
                assert found is not None, name
    absent = {name for name in CATALOGUE if known.value(name) is None}
    gone = {"perceived", "turn", "answer_seconds", "client"}
    gone |= {"crisis_language", "client_turns_since_crisis"}
    elsewhere = {"outcome.low_satisfaction", "outcome.low_mi_quality"}
    assert elsewhere <= absent
    assert {name.split(".")[0] for name in absent - elsewhere} <= gone


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_variable_can_be_used_in_an_expression(name: str) -> None:
    kind = CATALOGUE[name].kind
    test = {Kind.NUMBER: ">= 0.0", Kind.COUNT: ">= 0", Kind.FLAG: "== true", Kind.WORD: "!= 'x'"}
    compiled = conditions.condition(f"{name} {test[kind]}")
    assert compiled.names == (name,)
    found = conditions.holds(compiled, LONG)
    assert (found is None) is (LONG.value(name) is None)


@pytest.mark.parametrize(("now", "old"), OLD_NAMES.items())
def test_names_of_earlier_releases_are_names_of_the_same(now: str, old: str) -> None:
    assert value(old, LONG) == value(now, LONG) is not None
    assert value(old, EMPTY) is value(now, EMPTY) is None
    assert in_words(old) == in_words(now)


def test_an_absent_variable_makes_the_condition_unknown_unless_irrelevant() -> None:
    assert holds("risk > 0.1", EMPTY) is None
    assert holds("!(risk > 0.1)", EMPTY) is None
    assert holds("has_risk && risk > 0.1", EMPTY) is False
    assert holds("turns == 0 || risk > 0.1", EMPTY) is True
    assert value("risk", EMPTY) is None
    assert value("has_risk ? risk : 0.25", EMPTY) == 0.25


def test_failing_computations_are_unknown() -> None:
    assert holds("1 / turns > 0", EMPTY) is None
    assert value("1 / turns", EMPTY) is None


OVERFLOW = 2**63 - 1


@pytest.mark.parametrize(
    ("source", "place", "what"),
    [
        ("channel.matches('[')", (1, 9), "invalid regular expression: missing ]"),
        ("turns > 3 &&\n  channel.matches(r'(')", (2, 11), r"missing \)"),
        ('!(has_risk ? turns > 3 : channel.matches("*"))', (1, 34), "no argument"),
        ("matches(channel, '[')", (1, 1), "missing ]"),
        ("channel.matches(channel + '[')", (1, 1), "missing ]"),
        ("turns / 0 > 1", (1, 7), "divide by zero"),
        ("turns > 100 || turns % 0 == 1", (1, 22), "divide by zero"),
        ("risk > 0.5 && turns / (turns - turns) > 1", (1, 1), "divide by zero .with risk = 1.0, t"),
        ("turns > 5 || turns / (turns - turns) > 1", (1, 1), "divide by zero"),
        (f"{OVERFLOW} + turns > 5", (1, 1), "integer overflow"),
        (f"risk > 0.5 && turns * {OVERFLOW} > 0", (1, 1), "integer overflow"),
        ("int(risk * 1e300) > turns", (1, 1), "double out of int64 range"),
        ("int(channel + 'x') > 3", (1, 1), "cannot convert string to int"),
        ("timestamp('soon') > timestamp('2026-01-01T00:00:00Z')", (1, 1), "conversion failed"),
        ("waiting && duration('soon') > duration('1s')", (1, 12), "conversion failed"),
        ("[1, 2][2] > turns", (1, 1), "Index error"),
        ("{'a': 1}['b'] > turns", (1, 1), "Key not found"),
        ("[1, 0].all(x, turns / x > 1)", (1, 1), "divide by zero"),
        ("dyn(channel) > dyn(1)", (1, 1), "No matching overloads"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(
    source: str, place: tuple[int, int], what: str
) -> None:
    with pytest.raises(conditions.BadExpression, match=f"cannot be evaluated: .*{what}") as refused:
        conditions.condition(source)
    assert (refused.value.line, refused.value.column) == place


@pytest.mark.parametrize("source", ["turns / 0", f"{OVERFLOW} + turns", "int('x')"])
def test_a_number_that_cannot_be_evaluated_is_refused(source: str) -> None:
    with pytest.raises(conditions.BadExpression, match="cannot be evaluated"):
        conditions.number(source)


@pytest.mark.parametrize(
    "source",
    [
        "10 / opportunities > 3 && risk > 0.5 && turns > 10 && waiting && client_turns > 5",
        "missed_opportunities * 100 / opportunities > 50",
        "opportunities > 0 && 10 / opportunities >= 1",
        "int(team) > 3",
        "int(risk * 10.0) / int(index * 10.0) > 2",
        "[false, false, true, true, true, true, true][turn.total]",
        "channel.matches(r'^\\d+$') || channel == 'a.matches(\"[\") / 0' // / 0",
    ],
)
def test_what_fails_for_some_values_only_is_allowed(source: str) -> None:
    assert conditions.condition(source).source == source


@pytest.mark.parametrize("source", ["10 / opportunities > 3", "has_risk || int(team) > 3"])
def test_errors_that_the_library_returns_are_counted_and_absent_ones_are_not(source: str) -> None:
    reading = Reading(Aggregates(), Watch(), Facts(), None, None, None)
    assert holds(source, reading) is None
    assert reading.failures == {source: 1}
    assert holds("risk > 0.5 || channel.startsWith('a')", reading) is None
    assert reading.failures == {source: 1}


def test_thresholds_come_from_the_bundle() -> None:
    model = structs.replace(SCORER.empathy, enter=0.6, exit=0.4)
    reading = Reading(Aggregates(), Watch(), Facts(), 0.5, model, START)
    assert holds("risk < bundle.enter && risk >= bundle.exit", reading) is True
    assert value("math.greatest(bundle.enter, 0.65)", reading) == 0.65


def test_a_baseline_makes_a_threshold_relative() -> None:
    source = (
        "risk >= (has_baseline.counsellor.risk ? "
        "baseline.counsellor.risk_mean + 2.0 * baseline.counsellor.risk_sd : 0.9)"
    )
    counsellor = Pinned(None, Baseline(Usual(30, 0.3, 0.05)), True)
    facts = Facts(baselines=counsellor)
    plain = Reading(Aggregates(), Watch(), Facts(), 0.5, None, START)
    own = Reading(Aggregates(), Watch(), facts, 0.5, None, START)
    assert (holds(source, plain), holds(source, own)) == (False, True)


def test_variables_are_found_in_calls_and_not_in_strings() -> None:
    compiled = conditions.condition("channel.startsWith('risk') && team in ['turns', \"seconds\"]")
    assert compiled.names == ("channel", "team")
    assert holds("team == 'west'", LONG) is True


def test_waiting_starts_with_the_first_unanswered_turn() -> None:
    at = [(START + timedelta(seconds=s)).isoformat() for s in (0, 10, 25, 60, 70)]
    roles = ["counsellor", "client", "client", "counsellor", "counsellor"]
    log = [
        turn(seq=seq, role=role, occurred_at=moment)
        for seq, (role, moment) in enumerate(zip(roles, at, strict=True))
    ]
    waits = after(log[:3])
    assert (waits.value("waiting"), waits.value("waiting_seconds")) == (True, 15.0)
    assert waits.value("waiting_distress") is not None
    answered = after(log[:4])
    assert (answered.value("waiting"), answered.value("answer_seconds")) == (False, 50.0)
    assert answered.value("waiting_seconds") is answered.value("waiting_distress") is None
    assert after(log).value("answer_seconds") is None


def test_a_drop_compares_the_last_five_turns_with_earlier_ones() -> None:
    aggregates = Aggregates()
    for seq in range(14):
        level = 2 if seq < 9 else 1
        expected = (level * MILLION, level * MILLION, 0)
        item = Contribution(seq, (level, level, 0), expected, (0, 0, 0), None, None)
        aggregates.observe(item, 3)
        reading = Reading(aggregates, Watch(last_role=Role.COUNSELLOR), Facts(), None, None, START)
        if seq < 9:
            assert reading.value("empathy.drop") is None
    assert (reading.value("empathy.earlier"), reading.value("empathy.recent")) == (4.0, 2.0)
    assert reading.value("empathy.drop") == 2.0


def test_the_shipped_rules_are_cheap_to_evaluate() -> None:
    """Well under 100 µs per turn; the bound allows for a busy machine."""
    turns = 300
    fastest = min(_seconds(turns) for _ in range(5))
    assert fastest / turns < 100e-6


def _seconds(turns: int) -> float:
    watch = structs.replace(LONG.watch)
    began = time.process_time()
    for _ in range(turns):
        reading = Reading(
            LONG.aggregates,
            watch,
            LONG.facts,
            LONG.risk,
            LONG.model,
            LONG.clock,
            LONG.exchanges,
            LONG.outcomes,
        )
        for rule in SHIPPED.rules:
            conditions.holds(rule.when, reading)
    return time.process_time() - began


TEN = "[" + ",".join(map(str, range(10))) + "]"
NESTED = f"{TEN}.all(a, {TEN}.all(b, {TEN}.exists(c, a + b + c >= 0)))"


@pytest.mark.parametrize(
    ("source", "place", "what"),
    [
        (NESTED, (1, 51), "`all` inside of another"),
        (f"turns > 3 &&\n  {TEN}.all(a, {TEN}.exists(b, a > b))", (2, 53), "`exists` inside of"),
        ("['a'].map(x, x + x).map(x, x + x).size() > 1", (1, 6), "`map` makes lists"),
        ("[1].filter(x, x > 0).size() > 1", (1, 4), "`filter` makes lists"),
        ("turns > 1" + " || turns > 1" * 200, (1, 1), "2609 characters are too many"),
        ("(" * 40 + "true" + ")" * 40, (1, 1), "recursion"),
    ],
)
def test_expensive_expressions_are_refused(source: str, place: tuple[int, int], what: str) -> None:
    with pytest.raises(conditions.BadExpression, match=what) as refused:
        conditions.condition(source)
    assert (refused.value.line, refused.value.column) == place


@pytest.mark.parametrize(
    "source",
    [
        f"{TEN}.all(a, a < 10) && ['x', 'y'].exists(c, channel.startsWith(c))",
        "channel == '.all(.all('",
        "['north', 'south'].exists_one(name, team == name) // .all( .all(",
    ],
)
def test_consecutive_loops_are_allowed(source: str) -> None:
    assert conditions.holds(conditions.condition(source), EMPTY) in (True, False)


class Failing:
    """A compiled program that exceeds its budget."""

    def eval(self, data: dict[str, object]) -> object:
        raise RuntimeError("INTERNAL: Iteration budget exceeded [INTERNAL]")


def test_an_expression_that_fails_is_unknown_and_counted() -> None:
    broken = conditions.Compiled("turns > 3", ("turns",), Failing())  # type: ignore[arg-type]
    reading = Reading(Aggregates(), Watch(), Facts(), None, None, None)
    assert conditions.holds(broken, reading) is None
    assert conditions.evaluate(broken, reading) is None
    assert reading.failures == {"turns > 3": 2}


@pytest.mark.parametrize("source", ["1.0 / 0.0", "-1.0 / 0.0", "0.0 / 0.0"])
def test_a_number_that_is_not_finite_is_unknown(source: str) -> None:
    assert conditions.evaluate(conditions.number(source), EMPTY) is None
