"""``rapport promote`` and ``rollback``: which bundle is in force; audited."""

from datetime import UTC, datetime
from pathlib import Path

from stream_app.errors import BundleError
from stream_app.inference import bundle as bundles
from stream_app.inference import bundle_pointer
from stream_app.inference.bundle_pointer import Promoted
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.stream.repository import Store


def promote(store: Store, pointer: Path, folder: Path, reason: str) -> Promoted:
    """Bring a bundle into force; workers and consoles use it after their restart.

    Raises:
        BundleError: it is not valid, is in force already, or ``pointer`` is a bundle's folder.
    """
    _require_file(pointer)
    found = bundles.load(folder)
    before = bundle_pointer.read(pointer) if pointer.exists() else []
    if before and before[-1].digest == found.digest:
        raise BundleError(f"{found.manifest.bundle_id} is in force already")
    one = Promoted(
        folder=str(folder.resolve()),
        digest=found.digest,
        bundle=found.manifest.bundle_id,
        person=audit.COMMAND_LINE,
        at=datetime.now(UTC),
        reason=reason,
    )
    detail = f"promote {one.bundle}, digest {one.digest[:12]}: {store.privacy.redacted(reason)}"
    audit.record(store, audit.COMMAND_LINE, AuditAction.CHANGE_BUNDLE, detail=detail[:500])
    bundle_pointer.write(pointer, [*before, one])
    return one


def rollback(store: Store, pointer: Path, reason: str) -> Promoted:
    """Bring the bundle before the one in force into force again.

    Raises:
        BundleError: there is none, or it is not as it was when it was promoted.
    """
    _require_file(pointer)
    before = bundle_pointer.read(pointer)
    if len(before) < 2:
        raise BundleError(f"{before[-1].bundle} was promoted first: there is none to go back to")
    *_, one, now = before
    bundles.load(Path(one.folder), one.digest)
    detail = f"roll back {now.bundle} to {one.bundle}: {store.privacy.redacted(reason)}"
    audit.record(store, audit.COMMAND_LINE, AuditAction.CHANGE_BUNDLE, detail=detail[:500])
    bundle_pointer.write(pointer, before[:-1])
    return one


def _require_file(pointer: Path) -> None:
    if pointer.is_dir():
        raise BundleError(
            f"RAPPORT_BUNDLE is the folder {pointer}. To promote bundles, set it to a file that "
            "this command writes, such as /srv/rapport/bundle-in-force.json"
        )
