"""Who has to wait before signing in: by account and address, for all processes together."""

from datetime import UTC, datetime, timedelta

import pytest

from stream_app.store import sign_in_throttle as module
from stream_app.store import tables
from stream_app.store.repository import Store
from stream_app.store.sign_in_throttle import FREE_FAILURES, SignInThrottle, TooManyAttempts
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
    """With a smaller number of refusals that are many."""
    monkeypatch.setattr(module, "MANY_FAILURES", MANY_FAILURES)
    monkeypatch.setattr(module, "PURGE_EVERY", PURGE_EVERY)
    return SignInThrottle(store, clock)


def wait(attempts: SignInThrottle, name: str = "pat", address: str = HERE) -> float:
    """Seconds to wait; 0 if the attempt goes through, and is refused."""
    try:
        attempts.begin(name, address)
    except TooManyAttempts as problem:
        return problem.wait
    return 0.0


def test_each_refusal_beyond_five_doubles_the_wait(attempts: SignInThrottle, clock: Clock) -> None:
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


def test_processes_count_together(store: Store, other: Store, clock: Clock) -> None:
    one, two = SignInThrottle(store, clock), SignInThrottle(other, clock)
    assert [wait(each) for each in (one, two, one, two, one)] == [0.0] * FREE_FAILURES
    assert wait(two) > 0.0


def test_right_passwords_do_not_add_up_to_a_wait(attempts: SignInThrottle) -> None:
    for _ in range(2 * MANY_FAILURES):
        attempts.begin("pat", HERE)
        attempts.succeeded("pat", HERE)
    assert wait(attempts) == 0.0


def test_an_account_may_be_guessed_at_from_many_addresses_so_often(
    attempts: SignInThrottle,
) -> None:
    for number in range(MANY_FAILURES):
        assert wait(attempts, address=f"10.0.0.{number}") == 0.0
    assert wait(attempts, address="10.0.1.1") > 0.0
    assert wait(attempts, name="sue") == 0.0


def test_where_an_account_has_signed_in_guesses_from_elsewhere_do_not_count(
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


def test_an_address_with_many_refusals_has_one_attempt_for_each_account(
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


def test_neither_names_nor_addresses_are_stored_and_old_rows_go(
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
