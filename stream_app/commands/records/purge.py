"""``rapport purge``: purges what has expired, after a person has seen how much it is."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from stream_app import bootstrap
from stream_app.bootstrap import worker_process
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.database import clocks
from stream_app.store.lifecycle import retention
from stream_app.store.lifecycle.retention import Expiring
from stream_app.store.stream.repository import Store


@contextmanager
def open_purge(
    settings: Settings,
) -> Iterator[tuple[list[Expiring], Callable[[], Counter[str]]]]:
    """What has expired, and what purges it and returns counts by kind.

    Raises:
        ClocksDisagree: this machine's and the database's do, so it is unknown what has expired.
    """
    store = bootstrap.store(settings)

    def carry_out() -> Counter[str]:
        expired = {kind.what: kind.expiring for kind in expiring}
        _record(store, "expired", expired)  # also if the purge fails half-way
        retention.claim_daily_run(store, planned.now)
        removed = sum(worker_process.purge(settings, store, planned), Counter[str]())
        _record(store, "purged", removed)
        return removed

    try:
        planned = retention.schedule(store, settings.keep_text, settings.keep_scores)
        clocks.check(planned.now, datetime.now(UTC))
        expiring = planned.expiring(store)
        yield expiring, carry_out
    finally:
        store.close()


def _record(store: Store, what: str, counts: Mapping[str, int]) -> None:
    told = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "nothing"
    audit.record(store, audit.COMMAND_LINE, AuditAction.ERASE, detail=f"{what}: {told}")
