"""Comparing turns with intents: in closed form, exact to the last bit, without a training run."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_app.contracts.events import Role
from stream_app.core.measures.intents import Intent, IntentSet
from stream_app.core.rules.intent_file import MAX_EXAMPLES, MIN_EXAMPLES, IntentFileError
from stream_app.inference import intent_files
from stream_app.inference.intent_model import collect, fit, left_out_hits, units
from stream_app.inference.intents import IntentComparer

HIDDEN = 24
CLIENT = frozenset({Role.CLIENT})
TOPICS = {"refund": 0, "cancel": 1, "greet": 2}


def vector(text: str) -> bytes:
    """Two vectors: nothing, and a mean that is near its first word's direction."""
    seed = int.from_bytes(text.encode()[:40].ljust(40), "little") % (1 << 32)
    mean = np.random.default_rng(seed).normal(size=HIDDEN)
    mean[TOPICS.get(text.split(" ", maxsplit=1)[0], HIDDEN - 1)] += 12.0
    return np.concatenate([np.zeros(HIDDEN), mean]).astype(np.float16).tobytes()


def sentences(topic: str, count: int) -> tuple[str, ...]:
    return tuple(f"{topic} {place}" for place in range(count))


def comparer(*found: Intent, ordinary: int = 40) -> IntentComparer:
    known = IntentSet(found, "digest")
    collected = collect(known, sentences("ordinary", ordinary))
    fitted = fit(collected, lambda texts: [vector(text) for text in texts])
    return IntentComparer(known, collected, fitted)


REFUND = Intent("refund", CLIENT, sentences("refund", 5))
CANCEL = Intent("cancel", CLIENT, sentences("cancel", 5))


def test_turns_like_the_examples_are_hits_of_their_role_only() -> None:
    own = comparer(REFUND, CANCEL)
    vectors = [vector(text) for text in ("refund me", "cancel it", "ordinary talk", "refund me")]
    roles = [Role.CLIENT, Role.CLIENT, Role.CLIENT, Role.COUNSELLOR]
    found = own.hits(vectors, roles)
    assert [set(hits) for hits in found] == [{"refund"}, {"cancel"}, set(), set()]
    assert all(0.5 <= score <= 1 for hits in found for score in hits.values())
    assert own.hits([], []) == []


@given(st.lists(st.sampled_from([*TOPICS, "ordinary"]), min_size=1, max_size=40), st.data())
@settings(max_examples=50, deadline=None)
def test_a_turns_hits_do_not_depend_on_the_batch(topics: list[str], data: st.DataObject) -> None:
    own = comparer(REFUND, CANCEL)
    vectors = [vector(f"{topic} {place + 50}") for place, topic in enumerate(topics)]
    roles = [Role.CLIENT] * len(vectors)
    place = data.draw(st.integers(0, len(vectors) - 1))
    assert own.hits(vectors, roles)[place] == own.hits([vectors[place]], [Role.CLIENT])[0]


def test_leave_one_out_scores_are_those_of_a_fit_without_the_sentence() -> None:
    """The closed form equals fitting again, with centre and penalty of the whole file."""
    collected = collect(IntentSet((REFUND, CANCEL)), sentences("ordinary", 10))
    fitted = fit(collected, lambda texts: [vector(text) for text in texts])
    rows = fitted.units - fitted.centre
    scatter = rows.T @ rows
    ridge = np.trace(scatter) / HIDDEN * np.eye(HIDDEN)
    for left in range(len(rows)):
        others = np.delete(rows, left, axis=0)
        targets = np.delete(collected.is_example, left, axis=0).astype(float)
        weights = np.linalg.solve(others.T @ others + ridge, others.T @ targets)
        np.testing.assert_allclose(rows[left] @ weights, fitted.left_out[left], atol=1e-9)


def test_an_own_threshold_moves_the_line_between_hit_and_not() -> None:
    strict = Intent("refund", CLIENT, REFUND.examples, threshold=0.999999)
    turn = vector("refund me")
    usual = comparer(REFUND, CANCEL).hits([turn], [Role.CLIENT])[0]
    assert usual
    assert (comparer(strict, CANCEL).hits([turn], [Role.CLIENT])[0] == {}) == (
        usual["refund"] < 0.999999
    )


def test_a_sentence_may_be_an_example_of_two_intents() -> None:
    twin = Intent("money", CLIENT, REFUND.examples)
    found = comparer(REFUND, twin, CANCEL).hits([vector("refund me")], [Role.CLIENT])[0]
    assert set(found) == {"refund", "money"}


def test_counter_examples_are_no_hits() -> None:
    against = Intent("refund", CLIENT, REFUND.examples, sentences("cancel", 5))
    own = comparer(against)
    assert own.hits([vector("cancel it")], [Role.CLIENT]) == [{}]
    assert not left_out_hits(own.fitted, own.sentences)[own.sentences.is_counter[:, 0]].any()


def test_degenerate_vectors_are_no_error() -> None:
    """A text of which nothing is left, and intents that cannot be told apart."""
    nothing = np.zeros(2 * HIDDEN, np.float16).tobytes()
    endless = np.full(2 * HIDDEN, np.inf, np.float16).tobytes()
    assert comparer(REFUND).hits([nothing, endless], [Role.CLIENT] * 2) == [{}, {}]
    known = IntentSet((REFUND,))
    collected = collect(known, ())
    same = IntentComparer(known, collected, fit(collected, lambda texts: [nothing for _ in texts]))
    assert same.hits([nothing, vector("refund me")], [Role.CLIENT] * 2) == [{}, {}]


def test_a_thousand_intents_are_compared() -> None:
    many = [Intent(f"i{n}", CLIENT, sentences(f"w{n}", 3)) for n in range(1000)]
    assert len(comparer(REFUND, *many[1:]).hits([vector("refund me")], [Role.CLIENT])[0]) < 1000


def test_the_nearest_example_is_another_sentence() -> None:
    own = comparer(REFUND, CANCEL)
    example, similarity = own.nearest_example(vector("refund 0"), "refund")
    assert (example, round(similarity, 6)) == ("refund 0", 1.0)
    assert own.nearest_example(vector("refund 0"), "refund", without="refund 0")[0] != "refund 0"


def test_units_have_length_one() -> None:
    np.testing.assert_allclose(np.linalg.norm(units([vector("a"), vector("b")]), axis=1), 1.0)


@pytest.mark.parametrize("name", ["crisis", "mi_non_adherent", "service"])
def test_shipped_sets_are_valid(name: str) -> None:
    found = intent_files.load(Path(name))
    assert name in intent_files.shipped()
    assert all(MIN_EXAMPLES <= len(each.examples) <= MAX_EXAMPLES for each in found.intents)
    assert all(each.title for each in found.intents)


def test_the_service_set_has_the_16_intents_of_xu_and_jiang() -> None:
    found = intent_files.load(Path("service"))
    assert len(found.intents) == 16
    assert {each.roles for each in found.intents} == {frozenset({Role.COUNSELLOR})}


def test_a_missing_file_names_the_shipped_sets() -> None:
    with pytest.raises(IntentFileError, match="crisis, mi_non_adherent, service"):
        intent_files.load(Path("none.yaml"))
    assert intent_files.load(None).names == ()
