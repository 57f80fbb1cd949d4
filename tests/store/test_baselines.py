"""Baselines are computed from ended sessions, stored by pseudonym, and fixed per session."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from stream_app.contracts.scores import AlertState, SessionScore
from stream_app.core.measures import empathy
from stream_app.core.session.session_state import Versioned, pack, unpack
from stream_app.store.database import tables
from stream_app.store.stream.baselines import StoredBaselines, read, refresh
from stream_app.store.stream.repository import Store
from tests.rule_texts import rule_text, rules_of
from tests.store.batches import BUNDLE, end, pipeline, process, received, turn
from tests.store.reading import dump, rows

Opened = Callable[[str], Store]
NOW = datetime(2026, 1, 6, tzinfo=UTC)
RELATIVE = rules_of(
    rule_text(
        "unusual",
        summary="The risk is {risk}, usual for this counsellor is {threshold}.",
        when=("risk >= (has_baseline.counsellor.risk ? baseline.counsellor.risk_mean - 1.0 : 2.0)"),
        threshold="baseline.counsellor.risk_mean",
    )
)


def session(name: str, counsellor: str, channel: str, *, ended: bool = True) -> list[bytes]:
    log = [
        turn(
            seq,
            session_id=name,
            channel=channel,
            domain="peer-support",
            speaker_id=counsellor if seq % 2 else f"client of {name}",
            text=f"What is said at {seq} in {name}.",
        )
        for seq in range(4)
    ]
    return [*log, end(session_id=name)] if ended else log


@pytest.fixture
def filled(store: Store) -> Store:
    for n in range(3):
        store.commit(process(session(f"a{n}", "joan", "chat")))
    store.commit(process(session("b", "ann", "chat")))
    store.commit(process(session("open", "ann", "mail", ended=False)))
    return store


def test_baselines_are_the_means_of_ended_sessions(filled: Store) -> None:
    found = refresh(filled, BUNDLE, NOW, days=30, min_sessions=3)
    assert (found.sessions, found.channels, found.counsellors) == (4, 1, 1)
    ended = [r for r in rows(filled, tables.session_scores) if r["status"] == "closed"]
    usual = read(filled, BUNDLE)["channel", "chat"]
    assert usual.risk is not None
    assert usual.risk.n == 4
    risks = [row["low_empathy_risk"] for row in ended]
    assert usual.risk.mean == pytest.approx(sum(risks) / 4)
    variance = sum((risk - usual.risk.mean) ** 2 for risk in risks) / 3
    assert usual.risk.sd == pytest.approx(variance**0.5)
    assert usual.index is not None
    assert usual.index.mean == pytest.approx(sum(row["empathy_index"] for row in ended) / 4)
    assert usual.index.n == 4
    shares = [row["answered_share"] for row in ended if row["answered_share"] is not None]
    assert len(shares) >= 3, "sessions with an opportunity"
    assert usual.answered is not None
    assert (usual.answered.n, usual.answered.mean) == (
        len(shares),
        pytest.approx(sum(shares) / len(shares)),
    )
    book = StoredBaselines(filled, BUNDLE)
    book.reload()
    joan = book.of_counsellor("joan")
    assert joan is not None
    assert joan.empathy is not None
    assert joan.empathy.n == 3
    assert joan.index is not None
    assert joan.index.n == 3
    assert book.of_counsellor("ann") is book.of_channel("mail") is None


def test_old_sessions_and_other_bundles_do_not_count(filled: Store) -> None:
    assert refresh(filled, BUNDLE, NOW + timedelta(days=40), days=30, min_sessions=2).sessions == 0
    assert refresh(filled, "another", NOW, days=30, min_sessions=2).sessions == 0
    refresh(filled, BUNDLE, NOW, days=30, min_sessions=2)
    refresh(filled, "another", NOW, days=30, min_sessions=2)
    assert read(filled, BUNDLE)
    refresh(filled, BUNDLE, NOW + timedelta(days=40), days=30, min_sessions=2)
    assert rows(filled, tables.baselines) == []


def test_no_speaker_id_is_stored(filled: Store) -> None:
    refresh(filled, BUNDLE, NOW, days=30, min_sessions=2)
    assert "joan" not in dump(filled)


def test_an_open_session_keeps_its_baseline(filled: Store) -> None:
    refresh(filled, BUNDLE, NOW, days=30, min_sessions=3)
    core = pipeline(RELATIVE)
    core.environment.baselines = book = StoredBaselines(filled, BUNDLE)
    states: dict[str, Versioned] = {}
    log = received(session("new", "joan", "chat"))
    first = core.process(log[:2], states)
    raw = pack(states["new"].state)
    assert b"joan" not in raw
    refresh(filled, BUNDLE, NOW + timedelta(days=90), days=30, min_sessions=3)
    book.reload()
    assert book.of_counsellor("joan") is None
    states = {"new": Versioned(unpack(raw))}
    core.process(log[2:], states)
    pinned = states["new"].state.baselines
    assert pinned.counsellor is not None
    assert pinned.channel is not None
    [_, firing] = first.alerts
    assert firing.threshold == pytest.approx(pinned.counsellor.risk.mean)
    assert "usual for this counsellor is" in firing.reason


def test_without_a_baseline_the_rule_falls_back(store: Store) -> None:
    core = pipeline(RELATIVE)
    core.environment.baselines = StoredBaselines(store, BUNDLE)
    assert core.process(received(session("new", "joan", "chat")), {}).alerts == []


def test_a_pinned_baseline_does_not_depend_on_batch_boundaries(filled: Store) -> None:
    refresh(filled, BUNDLE, NOW, days=30, min_sessions=3)
    found = []
    log = received(session("new", "joan", "chat"))
    for cut in range(1, len(log)):
        core = pipeline(RELATIVE)
        core.environment.baselines = StoredBaselines(filled, BUNDLE)
        states: dict[str, Versioned] = {}
        parts = [core.process(part, states) for part in (log[:cut], log[cut:])]
        found.append(([a for part in parts for a in part.alerts], pack(states["new"].state)))
    assert all(item == found[0] for item in found)
    assert len(found[0][0]) == 3


def test_a_channel_with_enough_sessions_is_the_reference_for_its_next_session(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    refresh(filled, BUNDLE, NOW, days=30, min_sessions=3)
    log = received(session("new", "joan", "chat"))

    def score() -> SessionScore:
        core = pipeline(RELATIVE)
        core.environment.baselines = StoredBaselines(filled, BUNDLE)
        [found] = core.process(log, {}).session_scores
        return found

    few = score()
    monkeypatch.setattr(empathy, "ENOUGH_SESSIONS", 4)
    enough = score()
    assert few == pipeline(RELATIVE).process(log, {}).session_scores[0]
    assert enough.empathy_index != few.empathy_index
    assert enough.low_empathy_risk != few.low_empathy_risk


def test_an_alert_quotes_the_channel_once_the_channel_is_the_reference(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    refresh(filled, BUNDLE, NOW, days=30, min_sessions=3)
    text = rule_text("low-empathy", summary="Little empathy: {seen}.", when="risk >= 0.0")
    log = received([raw for n in range(20) for raw in session(f"new {n}", "joan", "chat")])

    def places() -> set[str]:
        core = pipeline(rules_of(text))
        core.environment.baselines = StoredBaselines(filled, BUNDLE)
        fired = [a for a in core.process(log, {}).alerts if a.state is AlertState.FIRING]
        return {
            found[1] for each in fired if (found := re.search(r"usual in ([^:]+):", each.reason))
        }

    assert places() == {"peer support"}
    monkeypatch.setattr(empathy, "ENOUGH_SESSIONS", 4)
    assert places() == {"this channel"}
