"""Promotes bundles and rolls them back: which one is in force; audited.

For ``rapport bundle promote`` and ``rollback``, and for administrators in the console.
"""

from datetime import UTC, datetime
from pathlib import Path

from stream_app.errors import BundleError
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles import bundle_pointer
from stream_app.inference.bundles.bundle_pointer import Promoted
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.stream.repository import Store


def promote(
    store: Store, pointer: Path, folder: Path, reason: str, person: str = audit.COMMAND_LINE
) -> Promoted:
    """Bring a bundle into force; workers and consoles use it after their restart.

    Raises:
        BundleError: it is not valid, is in force already, or ``pointer`` is a bundle's folder.
    """
    require_file(pointer)
    found = bundles.load(folder)
    before = bundle_pointer.read(pointer) if pointer.exists() else []
    if before and before[-1].digest == found.digest:
        raise BundleError(f"{found.manifest.bundle_id} is in force already")
    one = Promoted(
        folder=str(folder.resolve()),
        digest=found.digest,
        bundle=found.manifest.bundle_id,
        person=person,
        at=datetime.now(UTC),
        reason=store.privacy.redacted(reason),
    )
    detail = f"promote {one.bundle}, digest {one.digest[:12]}: {store.privacy.redacted(reason)}"
    audit.record(store, person, AuditAction.CHANGE_BUNDLE, detail=detail[:500])
    bundle_pointer.write(pointer, [*before, one])
    return one


def rollback(
    store: Store, pointer: Path, reason: str, person: str = audit.COMMAND_LINE
) -> Promoted:
    """Bring the bundle before the one in force into force again.

    Raises:
        BundleError: there is none, or it is not as it was when it was promoted.
    """
    require_file(pointer)
    before = bundle_pointer.read(pointer)
    if len(before) < 2:
        raise BundleError(f"{before[-1].bundle} was promoted first: there is none to go back to")
    *_, one, now = before
    bundles.load(Path(one.folder), one.digest)
    detail = f"roll back {now.bundle} to {one.bundle}: {store.privacy.redacted(reason)}"
    audit.record(store, person, AuditAction.CHANGE_BUNDLE, detail=detail[:500])
    bundle_pointer.write(pointer, before[:-1])
    return one


def require_file(pointer: Path) -> None:
    """Check that RAPPORT_BUNDLE names a file, or none yet.

    Raises:
        BundleError: it is a bundle's folder.
    """
    if pointer.is_dir():
        raise BundleError(
            f"RAPPORT_BUNDLE is the folder {pointer}. To promote bundles, set it to a file that "
            "Rapport writes, such as /srv/rapport/bundle-in-force.json"
        )
