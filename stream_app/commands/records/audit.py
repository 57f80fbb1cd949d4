"""``rapport audit verify``: checks the hash chain of the audit trail."""

from stream_app import bootstrap
from stream_app.errors import RapportError
from stream_app.settings import Settings
from stream_app.store.database import audit_chain
from stream_app.store.database.audit_chain import Verification


def verify(settings: Settings, known: str | None) -> Verification:
    """Check the chain, and that it still contains the head ``known`` from an earlier check.

    Raises:
        RapportError: the head is not of the form that this command prints, or the database fails.
    """
    head = audit_chain.parse_head(known) if known is not None else None
    store = bootstrap.store(settings)
    try:
        return audit_chain.verify(store, head)
    finally:
        store.close()


def summary(found: Verification) -> str:
    """One line about an intact trail.

    Raises:
        RapportError: it has faults; the message has a line for each.
    """
    if found.faults:
        raise RapportError("\n".join(["the audit trail was tampered with", *found.faults]))
    unnamed = f"; {found.unnamed} erased or replaced names" if found.unnamed else ""
    return f"{found.entries} entries, chain intact{unnamed}"
