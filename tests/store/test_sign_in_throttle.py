"""Throttling of failed sign-ins by account and address, across processes."""

from datetime import UTC, datetime, timedelta

import pytest

from stream_app.store.accounts import sign_in_throttle as module
from stream_app.store.accounts.sign_in_throttle import (
    FREE_FAILURES,
    SignInThrottle,
    TooManyAttempts,
)
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from tests.store.reading import rows

MANY_FAILURES, PURGE_EVERY = 12, 20
HERE, THERE = "192.0.2.7", "198.51.100.9"


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 5, 10, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def passes(self, **time: float) -> None:
        self.now += timedelta(**time)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def attempts(store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> SignInThrottle:
    """A throttle with lower limits."""
    monkeypatch.setattr(module, "MANY_FAILURES", MANY_FAILURES)
    monkeypatch.setattr(module, "PURGE_EVERY", PURGE_EVERY)
    return SignInThrottle(store, clock)


def wait(attempts: SignInThrottle, name: str = "pat", address: str = HERE) -> float:
    """Attempt a failing sign-in; return the seconds to wait, 0 if it was allowed."""
    try:
        attempts.begin(name, address)
    except TooManyAttempts as problem:
        return problem.wait
    return 0.0


def test_each_failure_after_the_fifth_doubles_the_wait(
    attempts: SignInThrottle, clock: Clock
) -> None:
    assert [wait(attempts) for _ in range(FREE_FAILURES)] == [0.0] * FREE_FAILURES
    for seconds in (1, 2, 4, 8):
        assert wait(attempts) == seconds
        assert wait(attempts) == seconds, "one that has to wait does not count"
        clock.passes(seconds=seconds)
        assert wait(attempts) == 0.0
    assert wait(attempts, address=THERE) == 0.0
    for _ in range(20):
        clock.passes(seconds=wait(attempts))
        wait(attempts)
    assert wait(attempts) == 900
    clock.passes(hours=1.01)
    assert [wait(attempts) for _ in range(FREE_FAILURES)] == [0.0] * FREE_FAILURES


def test_processes_share_their_counts(store: Store, other: Store, clock: Clock) -> None:
    one, two = SignInThrottle(store, clock), SignInThrottle(other, clock)
    assert [wait(each) for each in (one, two, one, two, one)] == [0.0] * FREE_FAILURES
    assert wait(two) > 0.0


def test_successful_sign_ins_are_not_throttled(attempts: SignInThrottle) -> None:
    for _ in range(2 * MANY_FAILURES):
        attempts.begin("pat", HERE)
        attempts.succeeded("pat", HERE)
    assert wait(attempts) == 0.0


def test_failures_from_many_addresses_are_limited_per_account(
    attempts: SignInThrottle,
) -> None:
    for number in range(MANY_FAILURES):
        assert wait(attempts, address=f"10.0.0.{number}") == 0.0
    assert wait(attempts, address="10.0.1.1") > 0.0
    assert wait(attempts, name="sue") == 0.0


def test_failures_elsewhere_do_not_affect_known_addresses(
    attempts: SignInThrottle, clock: Clock
) -> None:
    attempts.begin("pat", HERE)
    attempts.succeeded("pat", HERE)
    for number in range(MANY_FAILURES):
        wait(attempts, address=f"10.0.0.{number}")
    assert wait(attempts, address=THERE) > 0.0
    assert wait(attempts, address=HERE) == 0.0
    clock.passes(days=91)
    for number in range(MANY_FAILURES):
        wait(attempts, address=f"10.0.0.{number}")
    assert wait(attempts, address=HERE) > 0.0


def test_an_address_with_many_failures_has_one_free_failure_per_account(
    attempts: SignInThrottle,
) -> None:
    for name in ("known", "pat"):
        attempts.begin(name, HERE)
    attempts.succeeded("known", HERE)
    for number in range(MANY_FAILURES):
        wait(attempts, name=f"nobody-{number}")
    assert wait(attempts, name="sue") == 0.0
    assert wait(attempts, name="sue") > 0.0
    assert wait(attempts, name="pat") > 0.0, "it has had its one"
    assert [wait(attempts, name="known") for _ in range(FREE_FAILURES)] == [0.0] * FREE_FAILURES
    assert wait(attempts, name="sue", address=THERE) == 0.0


def test_only_digests_are_stored_and_expired_rows_are_purged(
    store: Store, attempts: SignInThrottle, clock: Clock
) -> None:
    attempts.begin("known", HERE)
    attempts.succeeded("known", HERE)
    wait(attempts)
    stored = repr(rows(store, tables.sign_in_attempts))
    assert "pat" not in stored
    assert HERE not in stored
    clock.passes(hours=2)
    for _ in range(PURGE_EVERY):
        wait(attempts, name="other", address=THERE)
    assert len(rows(store, tables.sign_in_attempts)) == 4, "the known pair, and the newest three"
