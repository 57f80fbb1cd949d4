"""What expires is decided by the database's clock, and by nobody's while clocks disagree."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from servers.postgres import Server
from stream_app.bootstrap.worker_process import purge_expired
from stream_app.errors import ClocksDisagree
from stream_app.settings import Settings
from stream_app.store.database import clocks, tables
from stream_app.store.lifecycle import holds, retention
from stream_app.store.lifecycle.retention import PurgeRefused
from stream_app.store.stream import claims
from stream_app.store.stream.repository import Store
from tests.store import batches, databases
from tests.store.reading import rows

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
SETTINGS = Settings()


def fill(store: Store, at: datetime, count: int = 4, session_id: str = "s") -> None:
    """Store turns as of this time."""
    store._now = lambda: at
    turns = [batches.turn(seq, session_id=session_id) for seq in range(count)]
    store.commit(batches.process(turns, {}))


def texts(store: Store) -> int:
    return sum(row["text"] is not None for row in rows(store, tables.turns))


def purged(store: Store, machine: datetime, **more: tuple[datetime, datetime]) -> Counter[str]:
    return sum(purge_expired(SETTINGS, store, machine, **more), Counter())


@pytest.mark.parametrize("ahead", [40 * DAY, 400 * DAY, 6 * MINUTE, -40 * DAY])
def test_a_worker_with_a_wrong_clock_purges_nothing(store: Store, ahead: timedelta) -> None:
    now = datetime.now(UTC)
    fill(store, now - MINUTE)
    with pytest.raises(ClocksDisagree, match=r"this machine's is .* the database's"):
        purged(store, now + ahead)
    assert texts(store) == 4
    assert retention.schedule(store, SETTINGS.keep_text, SETTINGS.keep_scores).last is None
    assert purged(store, datetime.now(UTC)) == {}
    assert retention.schedule(store, SETTINGS.keep_text, SETTINGS.keep_scores).last is not None


@pytest.mark.parametrize("ahead", [40 * DAY, 400 * DAY])
def test_a_wrong_clock_that_the_database_shares_stops_at_what_nothing_explains(
    store: Store, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    now = datetime.now(UTC)
    fill(store, now - MINUTE)
    assert purged(store, now) == {}
    monkeypatch.setattr(clocks, "database_now", lambda _: now + ahead)
    with pytest.raises(PurgeRefused, match=r"NOTHING IS PURGED: 4 of 4 texts would expire"):
        purged(store, now + ahead)
    assert texts(store) == 4


@pytest.mark.parametrize("broker", [-40 * DAY, 40 * DAY])
def test_the_broker_s_clock_has_to_agree_too(store: Store, broker: timedelta) -> None:
    now = datetime.now(UTC)
    present = now + broker
    with pytest.raises(ClocksDisagree, match=r"the broker's"):
        purged(store, now, broker=(present, present + MINUTE))
    assert purged(store, now, broker=(now - DAY, now + DAY)) == {}, "it may be the same"


def test_what_expires_day_by_day_is_explained(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    fill(store, now)
    later = now + 31 * DAY
    monkeypatch.setattr(clocks, "database_now", lambda _: later)
    retention.claim_daily_run(store, later - DAY - MINUTE)
    assert purged(store, later)["texts"] == 4, "all at once, as they were stored"


def test_shorter_retention_times_are_explained_and_a_long_pause_of_a_few_is(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    fill(store, now, 2, "few")
    retention.claim_daily_run(store, now)
    later = now + 33.5 * DAY
    fill(store, later, 8, "many")
    monkeypatch.setattr(clocks, "database_now", lambda _: later)
    assert purged(store, later)["texts"] == 2
    fill(store, later - 5 * DAY, 20, "older")
    monkeypatch.setattr(clocks, "database_now", lambda _: later + DAY + MINUTE)
    shorter = Settings(keep_text_days=5)
    assert sum(purge_expired(shorter, store, later + DAY + MINUTE), Counter())["texts"] == 20


def test_a_quarter_of_the_rows_may_expire_at_once_and_no_more(store: Store) -> None:
    now = datetime.now(UTC)
    fill(store, now - 40 * DAY, 1, "old")
    fill(store, now - MINUTE, 3, "new")
    planned = retention.schedule(store, SETTINGS.keep_text, SETTINGS.keep_scores)
    assert planned.last is None
    planned.check(store)
    fill(store, now - 40 * DAY, 1, "older")
    with pytest.raises(PurgeRefused, match="2 of 5 texts would expire"):
        planned.check(store)


def test_what_is_on_hold_does_not_expire_and_needs_no_explanation(store: Store) -> None:
    now = datetime.now(UTC)
    fill(store, now - 40 * DAY, 4, "held")
    fill(store, now - MINUTE, 4, "new")
    holds.add(store, "held", "case 12/2026", "ada", now)
    planned = retention.schedule(store, SETTINGS.keep_text, SETTINGS.keep_scores)
    planned.check(store)
    counts = {each.what: (each.stored, each.expiring) for each in planned.expiring(store)}
    assert counts["texts"] == (8, 0)


def test_a_last_purge_of_a_moment_ahead_counts_and_one_of_days_ahead_does_not(
    store: Store,
) -> None:
    times = SETTINGS.keep_text, SETTINGS.keep_scores
    now = datetime.now(UTC)
    retention.claim_daily_run(store, now + 4 * MINUTE)
    assert retention.schedule(store, *times).last == now + 4 * MINUTE
    retention.claim_daily_run(store, now + 400 * DAY)
    assert retention.schedule(store, *times).last is None


def test_a_purge_notes_the_time_of_the_database(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = datetime.now(UTC) + 3 * DAY
    monkeypatch.setattr(clocks, "database_now", lambda _: later)
    retention.schedule(store, SETTINGS.keep_text, SETTINGS.keep_scores)
    assert later <= store.clock() < later + MINUTE


@pytest.mark.parametrize("sign", [1, -1])
def test_clocks_may_differ_by_the_tolerance(sign: int) -> None:
    now = datetime.now(UTC)
    most = sign * clocks.TOLERANCE
    clocks.check(now, now + most)
    clocks.check(now, now, (now + most, now + most))
    more = most + sign * timedelta(microseconds=1)
    with pytest.raises(ClocksDisagree, match="this machine's is"):
        clocks.check(now, now + more)
    with pytest.raises(ClocksDisagree, match="the broker's"):
        clocks.check(now, now, (now + more, now + more))


def test_a_claim_from_the_future_is_due(store: Store, other: Store) -> None:
    now = datetime.now(UTC)
    assert claims.claim(store, "some", DAY, now + 400 * DAY)
    assert claims.claim(other, "some", DAY, now)
    assert not claims.claim(store, "some", DAY, now + MINUTE)
    assert not claims.claim(store, "some", DAY, now - MINUTE), "clocks differ by a little"


def test_stored_is_dated_by_the_server_whatever_this_machine_s_clock_says(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrong(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) - 40 * DAY

    url = databases.postgresql(server)
    store = databases.open_store(url)
    monkeypatch.setattr(clocks, "datetime", Wrong)
    batches.prepare(store).commit(batches.process([batches.turn()], {}))
    [row] = rows(store, tables.turns)
    store.close()
    server.drop(url)
    assert abs(row["stored_at"] - datetime.now(UTC)) < MINUTE
