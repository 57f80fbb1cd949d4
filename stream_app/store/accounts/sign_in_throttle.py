"""Throttles failed sign-ins; counted in the database, shared by all web processes.

Failures are counted per account and address, per account, and per address. Once a limit is
exceeded, each further failure doubles the wait, up to 15 minutes.

- Account and address: 5 failures are free.
- Account, from any address: 100 failures are free. This limit does not apply to addresses from
  which the account has signed in before, so that attackers elsewhere cannot lock its owner out.
- Address: never blocked, because several people may share it. After 100 failures, accounts that
  have not signed in from it before get one free failure instead of 5.

Names and addresses are stored only as keyed digests.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection

from stream_app.errors import RapportError
from stream_app.store.database.tables import sign_in_attempts
from stream_app.store.stream.repository import Store

FREE_FAILURES: Final = 5
FREE_AT_SUSPECT_ADDRESS: Final = 1
MANY_FAILURES: Final = 100
MAX_WAIT: Final = 900.0
EXPIRE_AFTER: Final = timedelta(hours=1)
KNOWN_FOR: Final = timedelta(days=90)
PURGE_EVERY: Final = 200
"""Number of attempts between purges of expired rows."""


class TooManyAttempts(RapportError):
    """Too many failed sign-ins; ``wait``: seconds until the next attempt is allowed."""

    def __init__(self, wait: float) -> None:
        super().__init__(f"too many attempts to sign in; try again in {max(1, round(wait))} s")
        self.wait = wait


class _Failures(Struct, frozen=True):
    """Unexpired failures of one key; ``known``: it has signed in successfully before."""

    count: int
    last_at: datetime
    known: bool

    def wait(self, free: int, now: datetime) -> float:
        """Seconds until the next attempt is allowed; not positive if it already is."""
        over = self.count - free
        if over < 0:
            return 0.0
        until = self.last_at + timedelta(seconds=min(MAX_WAIT, 2.0 ** min(over, 20)))
        return (until - now).total_seconds()


class _Keys(Struct, frozen=True):
    """Keyed digests of an attempt."""

    pair: str
    account: str
    address: str

    def __iter__(self) -> Iterator[str]:
        return iter((self.pair, self.account, self.address))


class SignInThrottle:
    """Counts failed sign-ins and decides whether another attempt is allowed."""

    def __init__(
        self, store: Store, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store = store
        self._now = now
        self._attempt_number = count(1)

    def begin(self, name: str, address: str | None) -> None:
        """Allow an attempt; it counts as failed until ``succeeded``, so parallel ones count too.

        Raises:
            TooManyAttempts: the caller must wait; the attempt is not counted.
        """
        keys, now = self._keys(name, address), self._now()
        with self._store.transaction() as connection:
            if next(self._attempt_number) % PURGE_EVERY == 0:
                self._purge(connection, now)
            found = self._lock(connection, keys, now)
            pair, account, origin = (found[key] for key in keys)
            suspect = origin.count >= MANY_FAILURES and not pair.known
            wait = pair.wait(FREE_AT_SUSPECT_ADDRESS if suspect else FREE_FAILURES, now)
            if not pair.known:
                wait = max(wait, account.wait(MANY_FAILURES, now))
            if wait <= 0.0:
                for key in keys:
                    self._set(connection, key, refused=found[key].count + 1, last_at=now)
        if wait > 0.0:
            raise TooManyAttempts(wait)

    def succeeded(self, name: str, address: str | None) -> None:
        """Reset the count of this account and address; subtract the attempt from the others."""
        keys, now = self._keys(name, address), self._now()
        with self._store.transaction() as connection:
            found = self._lock(connection, keys, now)
            self._set(connection, keys.pair, refused=0, last_at=now, succeeded_at=now)
            for key in (keys.account, keys.address):
                self._set(connection, key, refused=max(0, found[key].count - 1))

    def _keys(self, name: str, address: str | None) -> _Keys:
        digest = self._store.privacy.pseudonym
        return _Keys(
            digest(f"sign-in\0{name}\0{address}"),
            digest(f"sign-in name\0{name}"),
            digest(f"sign-in address\0{address}"),
        )

    def _lock(self, connection: Connection, keys: _Keys, now: datetime) -> dict[str, _Failures]:
        """Lock and read the counts, in a fixed order to avoid deadlocks."""
        table = sign_in_attempts
        rows = [{"digest": key, "refused": 0, "last_at": now} for key in sorted(keys)]
        self._store.upsert(connection, table, rows, keep=True)
        query = sa.select(table).where(table.c.digest.in_(list(keys))).order_by(table.c.digest)
        found = connection.execute(query.with_for_update()).all()
        return {row.digest: _failures(row, now) for row in found}

    @staticmethod
    def _set(connection: Connection, key: str, **values: object) -> None:
        update = sa.update(sign_in_attempts).where(sign_in_attempts.c.digest == key)
        connection.execute(update.values(values))

    @staticmethod
    def _purge(connection: Connection, now: datetime) -> None:
        table = sign_in_attempts
        not_known = table.c.succeeded_at.is_(None) | (table.c.succeeded_at < now - KNOWN_FOR)
        expired = (table.c.last_at < now - EXPIRE_AFTER) & not_known
        connection.execute(sa.delete(table).where(expired))


def _failures(row: sa.Row[tuple[object, ...]], now: datetime) -> _Failures:
    known = row.succeeded_at is not None and row.succeeded_at >= now - KNOWN_FOR
    return _Failures(row.refused if row.last_at >= now - EXPIRE_AFTER else 0, row.last_at, known)
