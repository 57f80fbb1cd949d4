"""Comparisons give what CEL gives."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stream_app.core.rules.comparisons import comparisons
from stream_app.core.rules.conditions import condition
from stream_app.core.rules.variables import CATALOGUE, Kind

NUMBERS = ("risk", "empathy.drop", "waiting_distress")
COUNTS = ("client_turns_since_crisis", "turns")
FLAGS = ("waiting",)
numbers = st.sampled_from([-1.5, 0.0, 0.3, 0.5, 0.8, 1.0, 2.0, float("nan"), float("inf")])
counts = st.integers(-3, 12)
number_operands = st.one_of(
    st.sampled_from(NUMBERS),
    st.sampled_from(["0.0", "0.5", "-1.5", "1.0"]),
    st.tuples(st.sampled_from(["0.5", *NUMBERS]), st.sampled_from(NUMBERS)).map(" * ".join),
)
signs = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
parts = st.one_of(
    st.tuples(number_operands, signs, number_operands).map(" ".join),
    st.tuples(st.sampled_from(COUNTS), signs, st.sampled_from(["-1", "3", *COUNTS])).map(" ".join),
    st.sampled_from([*FLAGS, *(f"!{name}" for name in FLAGS)]),
)
sources = st.lists(st.lists(parts, min_size=1, max_size=3).map(" && ".join), min_size=1, max_size=3)
values = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(NUMBERS, numbers),
        **dict.fromkeys(COUNTS, counts),
        **dict.fromkeys(FLAGS, st.booleans()),
    },
)


def test_the_variables_of_these_tests_have_the_expected_kinds() -> None:
    for kind, names in ((Kind.NUMBER, NUMBERS), (Kind.COUNT, COUNTS), (Kind.FLAG, FLAGS)):
        assert {CATALOGUE[name].kind for name in names} == {kind}


@given(sources.map(" || ".join), values)
@example("waiting && risk >= 0.5", {"risk": 0.2})
@example("waiting || risk >= 0.5", {"risk": 0.9})
def test_comparisons_give_what_cel_gives(source: str, known: dict[str, float | bool]) -> None:
    compiled = condition(source)
    given_names = {name: known[name] for name in compiled.names if name in known}
    found = compiled.program.eval(data=given_names).value()
    assert compiled.test is not None
    assert compiled.test(given_names) is (found if isinstance(found, bool) else None)


@pytest.mark.parametrize(
    "source",
    [
        "(risk > 0.5)",
        "channel == 'chat'",
        "risk + 0.1 > 0.5",
        "turns * 2 > 3",
        "!(risk > 0.5)",
        "math.greatest(risk, 0.5) > 0.3",
        "waiting == true",
        "risk > 1e-3",
        "turns > 99999999999",
    ],
)
def test_other_expressions_are_left_to_cel(source: str) -> None:
    assert comparisons(source, CATALOGUE) is None
    assert condition(source).test is None
