"""Creates and rotates keys, and encrypts values stored in plain; audited."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from stream_app import extras
from stream_app.errors import RapportError
from stream_app.sealing import sources
from stream_app.sealing.envelope import new_key
from stream_app.sealing.keyring import key_id
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.keys import pseudonym_key
from stream_app.store.lifecycle import archived, encrypting
from stream_app.store.lifecycle.archived import ArchiveError
from stream_app.store.stream.repository import Store


def new(file: Path | None) -> str:
    """Create a key and put it first in the file, creating the file if needed.

    Returns the key's id; without a file, the key itself.
    """
    key = new_key()
    if file is None:
        return sources.as_text(key)
    if not sources.create(file, key):
        known = sources.parse(file.read_text("utf-8"), str(file))
        sources.replace(file, [key, *known])
    return key_id(key)


def rotate(store: Store) -> Iterator[int]:
    """Rewrap all data keys with the first master key; yield their number so far.

    It can be interrupted and repeated.

    Raises:
        SealingError: a master key that wrapped some of them is missing.
    """
    done = 0
    while piece := store.keys.rewrap():
        done += piece
        yield done
    store.scrub()
    active = store.keys.master.active
    _record(store, f"{done} keys wrapped with master key {active}")


def destroy_old(store: Store) -> list[str]:
    """Remove master keys that no longer wrap anything from the file; return their ids.

    Raises:
        RapportError: the keys are not in a file.
    """
    master = store.keys.master
    file = master.source.file
    if file is None:
        raise RapportError("RAPPORT_MASTER_KEY holds the keys: remove the old ones there")
    first, *others = master.source.read()
    used = store.keys.counts()
    kept = [key for key in others if key_id(key) in used]
    gone = [key_id(key) for key in others if key_id(key) not in used]
    if gone:
        sources.replace(file, [first, *kept])
        _record(store, f"master keys destroyed: {', '.join(gone)}")
    return gone


def encrypt(store: Store) -> Iterator[Counter[str]]:
    """Encrypt values that release 0.1 stored in plain; yield their number, batch by batch."""
    done: Counter[str] = Counter()
    for piece in encrypting.encrypt_batches(store, datetime.now(UTC)):
        done += piece
        yield piece
    store.scrub()
    _record(store, f"{done.total()} stored values encrypted")


def move(store: Store) -> Path | None:
    """Move the pseudonym key from the database to its file; return the file."""
    pseudonym_key.move(store, store.secrets.pseudonym)
    store.scrub()
    _record(store, "pseudonym key moved out of the database")
    return store.secrets.pseudonym.file


def rotate_pseudonyms(store: Store, archive: Path | None) -> int:
    """Rotate the pseudonym key and replace all pseudonyms, also those in the archive's files.

    Returns their number; zero if an interrupted rotation was finished.

    Raises:
        ArchiveError: sessions are archived and no folder is configured, or it is not theirs.
        ExtraMissing: the archive's files cannot be written here.
    """
    if archive is not None and archive.is_dir():
        extras.require_analytics()
        from stream_app.analytics.archive import archive_pseudonyms  # noqa: PLC0415  # the extra

        count = archive_pseudonyms.rotate(store, store.secrets.pseudonym, archive)
    elif moved := archived.count(store):
        raise ArchiveError(
            f"{moved} sessions are archived: set RAPPORT_ARCHIVE to the archive's folder, "
            "whose files have pseudonyms too; nothing was changed"
        )
    else:
        count = pseudonym_key.rotate(store, store.secrets.pseudonym)
    store.scrub()
    _record(store, f"pseudonym key rotated: {count} pseudonyms replaced")
    return count


def _record(store: Store, detail: str) -> None:
    audit.record(store, audit.COMMAND_LINE, AuditAction.CHANGE_KEYS, detail=detail)
