"""Evidence of a turn: like a dictionary, but smaller, and with shared names."""

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.core.measures.turn_evidence import Evidence, parts, places

INT64 = st.integers(-(2**63), 2**63 - 1)


def of(numbers: dict[str, int]) -> Evidence:
    return Evidence(tuple(numbers), tuple(numbers.values()))


@given(st.dictionaries(st.text(), INT64 | st.integers(-8_000_000, 8_000_000)))
def test_it_reads_like_a_dictionary(numbers: dict[str, int]) -> None:
    found = of(numbers)
    assert found == numbers
    assert numbers == found
    assert found == of(numbers)
    assert list(found.items()) == list(numbers.items())
    assert len(found) == len(numbers)
    assert parts(found) == parts(numbers) == (tuple(numbers), tuple(numbers.values()))
    assert all(found[name] == value for name, value in numbers.items())
    assert found.get("\x00missing") is None
    assert repr(found) == f"Evidence({numbers})"


@given(st.dictionaries(st.text(max_size=2), INT64), st.dictionaries(st.text(max_size=2), INT64))
def test_it_is_equal_as_dictionaries_are(one: dict[str, int], other: dict[str, int]) -> None:
    assert (of(one) == of(other)) == (one == other)


def test_a_missing_name_is_named() -> None:
    with pytest.raises(KeyError, match="sympathy"):
        of({"helpfulness": 1})["sympathy"]


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_a_number_that_does_not_fit_is_refused(number: int) -> None:
    with pytest.raises(struct.error):
        of({"sympathy": number})


def test_as_many_numbers_as_names_are_needed() -> None:
    with pytest.raises(struct.error):
        Evidence(("sympathy", "helpfulness"), (1,))


def test_the_places_of_names() -> None:
    assert places(("a", "b", "c"), ("c", "d", "a")) == (2, None, 0)


def test_a_turn_takes_a_fraction_of_what_a_dictionary_takes() -> None:
    names = tuple(f"head.label-{number}" for number in range(70))

    def bytes_of(make: type) -> int:
        tracemalloc.start()
        kept = [
            make(dict(zip(names, range(start, start + 70), strict=True)))
            for start in range(1000, 101_000, 1000)
        ]
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return taken // len(kept)

    class Small(Evidence):
        __slots__ = ()

        def __init__(self, numbers: dict[str, int]) -> None:
            super().__init__(tuple(numbers), tuple(numbers.values()))

    assert bytes_of(Small) < bytes_of(dict) / 8
