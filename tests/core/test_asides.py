"""Turns of bots and whispers of supervisors are stored, and change nothing else."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_app.contracts.events import Turn
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.environment import Policy
from tests.fakes import FakeScorer, end, received, turn
from tests.rule_texts import ALL

ASIDES = ("system", "supervisor")
Said = tuple[str, str, int]
"""Role, text, and seconds after the start."""


def processed(log: list[bytes]) -> BatchResult:
    return Pipeline(FakeScorer(), Policy(WindowPolicy(), ALL)).process(received(log), {})


def log_of(said: list[Said], numbers: list[int]) -> list[bytes]:
    return [
        turn(seq=seq, role=role, text=text, speaker_id=role, occurred_at=at(seconds))
        for (role, text, seconds), seq in zip(said, numbers, strict=True)
    ]


def at(seconds: int) -> str:
    return f"2026-01-05T10:{seconds // 60:02}:{seconds % 60:02}Z"


def computed(result: BatchResult, numbers: list[int]) -> dict[str, Any]:
    """All that is computed, with the numbers of turns replaced by their places in ``numbers``."""
    place = {seq: n for n, seq in enumerate(numbers)}
    scores = [msgspec.structs.replace(s, seq=place[s.seq]) for s in result.turn_scores]
    session = result.session_scores[0]
    return {
        "scores": scores,
        "alerts": [
            (a.rule, a.state, a.occurred_at, a.value, None if a.seq is None else place[a.seq])
            for a in result.alerts
        ],
        "session": msgspec.structs.replace(
            session,
            missed_opportunities=[place[seq] for seq in session.missed_opportunities],
            risk_by_turn=[(place[seq], risk) for seq, risk in session.risk_by_turn],
        ),
    }


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["client", "counsellor", *ASIDES]),
            st.sampled_from(["Hello.", "I want to kill myself.", "I see.", "How are you?"]),
            st.integers(0, 400),
        ),
        min_size=2,
        max_size=14,
    )
)
def test_asides_change_no_score_alert_or_measure(drawn: list[Said]) -> None:
    clock = 0
    said: list[Said] = [("client", "Hi.", 0)]
    for role, text, pause in drawn:
        clock += pause // 2
        said.append((role, text, clock))
    said.append(("client", "Bye.", clock))
    heard = [seq for seq, (role, _, _) in enumerate(said) if role not in ASIDES]
    whole = processed([*log_of(said, list(range(len(said)))), end()])
    without = processed([*log_of([said[n] for n in heard], list(range(len(heard)))), end()])
    assert computed(whole, heard) == computed(without, list(range(len(heard))))
    assert [stored.turn.seq for stored in whole.turns] == list(range(len(said)))


@pytest.mark.parametrize("role", ASIDES)
def test_an_aside_is_stored_and_not_encoded(role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    encode = FakeScorer.encode

    def noted(self: FakeScorer, texts: list[str], roles: Any = None) -> Any:
        encoded.extend(texts)
        return encode(self, texts, roles)

    monkeypatch.setattr(FakeScorer, "encode", noted)
    pipeline = Pipeline(FakeScorer(), Policy(WindowPolicy(), ALL))
    log = received([turn(seq=0), turn(seq=1, role=role, text="You are number 3 in the queue.")])
    events = [item.event for item in log]
    assert pipeline.encodings.ahead(events, lambda _: None)[1] is None
    result = pipeline.process(log, {})
    assert "You are number 3 in the queue." not in encoded
    assert [stored.turn.speaker_role.value for stored in result.turns] == ["client", role]
    assert result.session_scores[0].turns == 1
    assert result.counts["aside"] == 1


def test_a_bot_decides_no_language_and_reads_no_session() -> None:
    pipeline = Pipeline(FakeScorer(), Policy(WindowPolicy(), ALL))
    states: dict[str, Any] = {}
    result = pipeline.process(received([turn(role="bot", lang="fr", speaker_id="bot")]), states)
    assert states["s"].state.lang is None
    assert states["s"].state.undecided
    assert not result.turns[0].from_first_counsellor


def test_consent_that_a_bot_asked_for_counts() -> None:
    log = [turn(seq=0, role="bot", consent=True), turn(seq=1, role="client", consent=None)]
    result = processed(log)
    assert [stored.turn.seq for stored in result.turns] == [0, 1]
    refused = processed([turn(seq=0, role="bot", consent=False)])
    assert refused.turns == []


def test_a_bot_s_turn_fills_its_place() -> None:
    """Out of order, nobody waits for it longer than for another."""
    log = [turn(seq=1, role="client"), turn(seq=0, role="system")]
    result = processed(log)
    assert [score.seq for score in result.turn_scores] == [1]
    assert isinstance(received(log)[1].event, Turn)
