from collections import Counter

import msgspec
import pytest

from benchmarks import lengths
from benchmarks.load import workload
from benchmarks.storage.open_sessions import batched_range
from stream_app.contracts.events import Turn, decode
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.tokenizer import TextTokenizer


def tokens_of(texts: list[str]) -> list[int]:
    bundle = bundles.load()
    tokenizer = TextTokenizer(bundle.file(bundle.manifest.tokenizer.file), 1024)
    return [len(found.ids) for found in tokenizer.tokenize(texts)]


def test_a_turn_has_the_stated_number_of_tokens() -> None:
    turns = workload.turns(400)
    assert tokens_of([turn.text for turn in turns]) == [turn.tokens for turn in turns]


def test_turn_lengths_are_distributed_as_in_the_corpora() -> None:
    found = lengths.load()
    wanted = sum(h.mean for corpus in found.values() for h in corpus.tokens.values()) / 4
    for count in (400, 4000):
        turns = workload.turns(count)
        assert sum(turn.tokens for turn in turns) / count == pytest.approx(wanted, rel=0.06)


def test_turns_depend_only_on_arguments_and_seed() -> None:
    assert workload.turns(100) == workload.turns(100)
    assert workload.turns(100) != workload.turns(100, seed=2)


def test_turns_are_in_order_and_the_number_of_open_sessions_is_constant() -> None:
    turns = workload.turns(2000, sessions=20)
    counts: Counter[int] = Counter()
    for turn in turns:
        assert turn.seq == counts[turn.session]
        counts[turn.session] += 1
    last = {turn.session: place for place, turn in enumerate(turns)}
    first = {turn.session: place for place, turn in reversed(list(enumerate(turns)))}
    for place in range(0, 1900, 100):
        assert 20 <= sum(first[s] <= place + 20 and last[s] >= place for s in counts) <= 41
    assert max(counts.values()) > 20


def test_fixed_turns_have_one_length_and_alternate_in_role() -> None:
    turns = workload.fixed(12, tokens=9, sessions=3)
    assert tokens_of([turn.text for turn in turns]) == [9] * 12
    assert [turn.role for turn in turns if turn.session == 0] == ["client", "counsellor"] * 2


def test_a_turn_has_its_scheduled_time_to_the_microsecond() -> None:
    turn = workload.turns(1)[0]
    event = decode(workload.event(turn, "run", 1_700_000_000.123456, first_seq=8))
    assert isinstance(event, Turn)
    assert event.occurred_at.timestamp() == pytest.approx(1_700_000_000.123456, abs=1e-6)
    assert (event.session_id, event.seq) == (f"run-{turn.session}", turn.seq + 8)
    assert event.consent is True


def test_the_histograms_match_the_corpora() -> None:
    found = lengths.load()
    assert {name: sum(c.session_turns.counts) for name, c in found.items()} == {
        "annomi": 99,
        "esconv": 1236,
    }
    histogram = lengths.histogram([5, 3, 5, 9])
    assert msgspec.structs.asdict(histogram) == {"values": [3, 5, 9], "counts": [1, 2, 1]}
    assert [histogram.at(share) for share in (0.0, 0.3, 0.74, 0.99)] == [3, 5, 5, 9]


def test_ranges_cover_every_number_once() -> None:
    assert [number for part in batched_range(7, 3) for number in part] == list(range(7))
