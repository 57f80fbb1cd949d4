"""Agreement measures on data whose answer is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.agreement.comparison import MIN_ITEMS, Comparison, compare
from models.agreement.measures import alpha, confusion, kappa
from models.agreement.ratings import (
    CodedItems,
    Coder,
    Kind,
    Rating,
    RatingsError,
    Scale,
    by_variable,
    guess_scale,
)
from stream_app.findings.agreement import kappa as console_kappa

LEVELS = Scale(("0", "1", "2"), ordered=True)
CATEGORIES = Scale(("a", "b", "c"), ordered=False)
KRIPPENDORFF = """
1 2 3 3 2 1 4 1 2 * * *
1 2 3 3 2 2 4 1 2 5 * 3
* 3 3 3 2 3 4 2 2 5 1 *
1 2 3 3 2 4 4 1 2 5 1 *
"""
"""Four observers, twelve units (Krippendorff 2011, "Computing Krippendorff's Alpha", section C)."""


def coded(
    columns: dict[str, list[int]],
    scale: Scale = LEVELS,
    sessions: list[int] | None = None,
    kinds: dict[str, Kind] | None = None,
) -> CodedItems:
    values = np.array(list(columns.values())).T
    numbers = sessions or [row // 10 for row in range(len(values))]
    coders = tuple(Coder(name, (kinds or {}).get(name, "expert")) for name in columns)
    return CodedItems("v", scale, coders, values, np.array(numbers))


def only(found: list[Comparison]) -> Comparison:
    (one,) = found
    return one


def value(found: Comparison, name: str) -> float:
    figure = getattr(found, name)
    assert figure is not None
    assert figure.value is not None
    return float(figure.value)


def test_coders_who_always_agree_reach_one() -> None:
    given = [0, 1, 2, 1] * 15
    found = only(compare(coded({"a": given, "b": given}), 50))
    for name in ("equal", "kappa", "linear", "quadratic", "alpha"):
        assert value(found, name) == pytest.approx(1.0)


def test_coders_who_answer_at_random_reach_nothing() -> None:
    chance = np.random.default_rng(1)
    one, other = chance.integers(3, size=(2, 4000))
    found = only(compare(coded({"a": one.tolist(), "b": other.tolist()}), 200))
    assert value(found, "equal") == pytest.approx(1 / 3, abs=0.03)
    for name in ("kappa", "linear", "quadratic", "alpha"):
        figure = getattr(found, name)
        assert abs(figure.value) < 0.05
        assert figure.low < 0.0 < figure.high


def test_coders_who_contradict_each_other_are_below_chance() -> None:
    given = [0, 2] * 30
    found = only(compare(coded({"a": given, "b": [2 - each for each in given]}), 50))
    for name in ("kappa", "linear", "quadratic", "alpha"):
        assert value(found, name) < -0.9


def test_more_errors_mean_less_agreement() -> None:
    chance = np.random.default_rng(2)
    truth = chance.integers(3, size=1000)
    last = 1.0
    for share in (0.1, 0.3, 0.6):
        noisy = np.where(chance.random(1000) < share, chance.integers(3, size=1000), truth)
        now = value(only(compare(coded({"a": truth.tolist(), "b": noisy.tolist()}), 20)), "kappa")
        assert now < last
        last = now
        assert now == pytest.approx(1 - share, abs=0.07)


def test_a_near_miss_counts_less_than_a_far_one_only_with_weights() -> None:
    truth = [0] * 30 + [1] * 10 + [2] * 30
    near = [1] * 10 + [0] * 20 + [1] * 10 + [2] * 30
    far = [2] * 10 + [0] * 20 + [1] * 10 + [2] * 30
    close = only(compare(coded({"a": truth, "b": near}), 20))
    distant = only(compare(coded({"a": truth, "b": far}), 20))
    assert value(close, "equal") == value(distant, "equal")
    for name in ("linear", "quadratic", "alpha"):
        assert value(close, name) > value(distant, name)
    loss = {name: 1 - value(distant, name) for name in ("linear", "quadratic")}
    assert loss["quadratic"] > loss["linear"]


def test_categories_have_no_weights() -> None:
    given = [0, 1, 2] * 10
    found = only(compare(coded({"a": given, "b": given[::-1]}, CATEGORIES), 20))
    assert (found.linear, found.quadratic) == (None, None)


def test_alpha_is_that_of_krippendorffs_example() -> None:
    observers = [line.split() for line in KRIPPENDORFF.split("\n") if line]
    table = np.array([[-1 if v == "*" else int(v) - 1 for v in row] for row in observers]).T
    assert alpha(table, 5, ordered=False) == pytest.approx(0.743, abs=0.001)
    assert alpha(table, 5, ordered=True) == pytest.approx(0.815, abs=0.001)


@pytest.mark.parametrize(("weights", "ordered"), [(None, False), ("quadratic", True)])
def test_kappa_is_that_of_the_console(weights: str | None, ordered: bool) -> None:
    counts = ((20, 5, 1), (4, 30, 6), (2, 3, 9))
    shown = console_kappa(counts, ordered=ordered).kappa
    assert kappa(np.array(counts), weights) == pytest.approx(shown)  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 2)), min_size=1, max_size=40))
@settings(deadline=None)
def test_the_order_of_coders_changes_nothing(pairs: list[tuple[int, int]]) -> None:
    one, other = np.array(pairs).T
    there, back = confusion(one, other, 3), confusion(other, one, 3)
    for weights in (None, "linear", "quadratic"):
        a, b = kappa(there, weights), kappa(back, weights)  # type: ignore[arg-type]
        assert a == pytest.approx(b, nan_ok=True)
        assert np.isnan(a) or a <= 1.0


def test_one_value_alone_has_no_kappa_and_no_warning() -> None:
    found = only(compare(coded({"a": [0] * 40, "b": [0] * 40}), 20))
    assert value(found, "equal") == 1.0
    assert found.kappa is not None
    assert found.kappa.value is None
    assert found.alpha is not None
    assert found.alpha.value is None


def test_few_common_items_give_no_figure() -> None:
    given = [0, 1] * (MIN_ITEMS // 2 - 1)
    found = only(compare(coded({"a": given, "b": given}), 20))
    assert found.kappa is None
    assert found.problem == "no two coders share 20 items"


def test_one_session_gives_no_interval() -> None:
    given = [0, 1] * 20
    found = only(compare(coded({"a": given, "b": given[::-1]}, sessions=[0] * 40), 20))
    assert found.kappa is not None
    assert found.kappa.value is not None
    assert found.kappa.low is None


def test_turns_of_one_session_count_as_one_observation() -> None:
    """The same pairs in fewer, larger sessions give a wider interval."""
    chance = np.random.default_rng(3)
    truth = np.repeat(chance.integers(3, size=40), 10)
    wrong = np.repeat(chance.random(40) < 0.4, 10)
    noisy = np.where(wrong, (truth + 1) % 3, truth)
    columns = {"a": truth.tolist(), "b": noisy.tolist()}
    apart = only(compare(coded(columns, sessions=list(range(400))), 300)).kappa
    together = only(compare(coded(columns, sessions=[i // 10 for i in range(400)]), 300)).kappa
    assert apart is not None
    assert together is not None
    assert apart.value == together.value
    assert together.high - together.low > 2 * (apart.high - apart.low)  # type: ignore[operator]


def test_kinds_are_compared_within_and_between() -> None:
    given = [0, 1, 2] * 20
    found = compare(
        coded(
            {"a": given, "b": given, "m": given, "r": [0] * 59 + [1]},
            kinds={"m": "llm", "r": "rapport"},
        ),
        20,
    )
    assert [each.kinds for each in found] == [
        ("expert", "expert"),
        ("expert", "llm"),
        ("expert", "rapport"),
        ("llm", "rapport"),
    ]
    assert [each.pairs for each in found] == [1, 2, 2, 1]
    assert value(found[1], "kappa") == pytest.approx(1.0)
    assert abs(value(found[2], "kappa")) < 0.1


def rating(coder: Coder, value: str, item: str = "1") -> Rating:
    return Rating("s", item, coder, "v", value)


def test_contradicting_ratings_are_refused() -> None:
    anna = Coder("anna", "expert")
    with pytest.raises(RatingsError, match="two different values"):
        by_variable([rating(anna, "1"), rating(anna, "2")], {})
    with pytest.raises(RatingsError, match="two kinds"):
        by_variable([rating(anna, "1"), rating(Coder("anna", "llm"), "1")], {})
    with pytest.raises(RatingsError, match="not on the scale 0, 1, 2"):
        by_variable([rating(anna, "3")], {"v": LEVELS})


def test_numbers_keep_their_distances() -> None:
    assert guess_scale({"1", "5"}).labels == ("1", "2", "3", "4", "5")
    assert guess_scale({"-1", "1"}).labels == ("-1", "0", "1")
    assert not guess_scale({"1", "one"}).ordered
    assert guess_scale({"0", "1000000000"}) == Scale(("0", "1000000000"), ordered=True)
