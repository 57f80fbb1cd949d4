"""Slows down whoever guesses passwords; counted in the database, so by all web processes together.

Refusals are counted for an account at an address, for the account from anywhere, and for the
address. Beyond what is free each doubles the wait, up to 15 minutes.

- An account at one address: 5 are free.
- An account from anywhere: 100, which does not concern an address from which it has signed in
  before. Guesses from elsewhere lock nobody out.
- An address with more than 100 refusals is not locked, because others share it: each account that
  has not signed in from there before has one free attempt left instead of 5.

No name and no address is stored, only keyed digests.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection

from stream_app.errors import RapportError
from stream_app.store.repository import Store
from stream_app.store.tables import sign_in_attempts

FREE: Final = 5
FREE_OF_SUSPECTS: Final = 1
MANY: Final = 100
LONGEST_WAIT: Final = 900.0
FORGET_AFTER: Final = timedelta(hours=1)
KNOWN_FOR: Final = timedelta(days=90)
SWEEP_EVERY: Final = 200
"""Attempts between two removals of what is forgotten."""


class TooManyAttempts(RapportError):
    """Sign-in was refused too often; ``wait``: seconds until it may be tried again."""

    def __init__(self, wait: float) -> None:
        super().__init__(f"too many attempts to sign in; try again in {max(1, round(wait))} s")
        self.wait = wait


class _Counted(Struct, frozen=True):
    """Refusals of one key that are not forgotten."""

    refused: int
    last_at: datetime
    known: bool

    def wait(self, free: int, now: datetime) -> float:
        """Seconds until the next attempt."""
        over = self.refused - free
        if over < 0:
            return 0.0
        until = self.last_at + timedelta(seconds=min(LONGEST_WAIT, 2.0 ** min(over, 20)))
        return (until - now).total_seconds()


class _Keys(Struct, frozen=True):
    """Digests of an attempt."""

    pair: str
    account: str
    address: str

    def __iter__(self) -> Iterator[str]:
        return iter((self.pair, self.account, self.address))


class Attempts:
    """Counts attempts to sign in."""

    def __init__(
        self, store: Store, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store = store
        self._now = now
        self._number = count(1)

    def begin(self, name: str, address: str | None) -> None:
        """Let an attempt through, counted as refused until it has succeeded: many at once count.

        Raises:
            TooManyAttempts: it has to wait, and does not count.
        """
        keys, now = self._keys(name, address), self._now()
        with self._store.transaction() as connection:
            if next(self._number) % SWEEP_EVERY == 0:
                self._sweep(connection, now)
            found = self._locked(connection, keys, now)
            pair, account, place = (found[key] for key in keys)
            suspect = place.refused >= MANY and not pair.known
            wait = pair.wait(FREE_OF_SUSPECTS if suspect else FREE, now)
            if not pair.known:
                wait = max(wait, account.wait(MANY, now))
            if wait <= 0.0:
                for key in keys:
                    self._set(connection, key, refused=found[key].refused + 1, last_at=now)
        if wait > 0.0:
            raise TooManyAttempts(wait)

    def succeeded(self, name: str, address: str | None) -> None:
        """Forget what was counted for the account at this address, and this attempt elsewhere."""
        keys, now = self._keys(name, address), self._now()
        with self._store.transaction() as connection:
            found = self._locked(connection, keys, now)
            self._set(connection, keys.pair, refused=0, last_at=now, succeeded_at=now)
            for key in (keys.account, keys.address):
                self._set(connection, key, refused=max(0, found[key].refused - 1))

    def _keys(self, name: str, address: str | None) -> _Keys:
        digest = self._store.privacy.pseudonym
        return _Keys(
            digest(f"sign-in\0{name}\0{address}"),
            digest(f"sign-in name\0{name}"),
            digest(f"sign-in address\0{address}"),
        )

    def _locked(self, connection: Connection, keys: _Keys, now: datetime) -> dict[str, _Counted]:
        """What is counted, with the rows locked, always in the same order."""
        table = sign_in_attempts
        rows = [{"digest": key, "refused": 0, "last_at": now} for key in sorted(keys)]
        self._store.upsert(connection, table, rows, keep=True)
        query = sa.select(table).where(table.c.digest.in_(list(keys))).order_by(table.c.digest)
        found = connection.execute(query.with_for_update()).all()
        return {row.digest: _counted(row, now) for row in found}

    @staticmethod
    def _set(connection: Connection, key: str, **values: object) -> None:
        update = sa.update(sign_in_attempts).where(sign_in_attempts.c.digest == key)
        connection.execute(update.values(values))

    @staticmethod
    def _sweep(connection: Connection, now: datetime) -> None:
        table = sign_in_attempts
        unknown = table.c.succeeded_at.is_(None) | (table.c.succeeded_at < now - KNOWN_FOR)
        forgotten = (table.c.last_at < now - FORGET_AFTER) & unknown
        connection.execute(sa.delete(table).where(forgotten))


def _counted(row: sa.Row[tuple[object, ...]], now: datetime) -> _Counted:
    known = row.succeeded_at is not None and row.succeeded_at >= now - KNOWN_FOR
    return _Counted(row.refused if row.last_at >= now - FORGET_AFTER else 0, row.last_at, known)
