"""Model bundles with their heads, thresholds and training data."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path
from pydantic import Field

from stream_app.settings import Settings
from stream_app.store.accounts.roles import Right
from stream_app.store.sessions import bundles
from stream_app.web.http.fields import Identifier
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Member, needs
from stream_app.work import bundle_folders

router = APIRouter(prefix="/bundles", tags=["bundles"])


@dataclass(frozen=True, slots=True)
class BundleSummary:
    """A bundle that has scored sessions here."""

    bundle: Annotated[str, Field(description="Id used in scores: name, version, profile")]
    digest: Annotated[str, Field(description="SHA-256 of the manifest")]
    first_used_at: datetime


@dataclass(frozen=True, slots=True)
class BundleRead:
    """A bundle with its manifest and, if its folder is available, its model card."""

    bundle: str
    digest: str
    first_used_at: datetime
    manifest: Annotated[
        dict[str, Any],
        Field(description="Heads with labels and thresholds, window, training data, metrics"),
    ]
    model_card: Annotated[
        str | None,
        Field(description="Markdown; null unless this is the bundle in RAPPORT_BUNDLE"),
    ]


@router.get("")
@needs(Right.READ_SCORES)
def list_bundles(services: ServicesDep, person: Member) -> list[BundleSummary]:  # noqa: ARG001
    """All bundles that have scored sessions here, newest first."""
    return [
        BundleSummary(row.bundle, row.digest, row.first_used_at)
        for row in bundles.find(services.store)
    ]


@router.get("/{bundle}")
@needs(Right.READ_SCORES)
def one_bundle(
    services: ServicesDep,
    person: Member,  # noqa: ARG001  # checks the role
    bundle: Annotated[Identifier, Path(description="The bundle's id, as used in scores")],
) -> BundleRead:
    """One bundle with its manifest and model card. Read the card before using the scores."""
    found = bundles.one(services.store, bundle)
    if found is None:
        raise HTTPException(404, "no such bundle has scored sessions here")
    card = _card(services.settings, bundle)
    return BundleRead(found.bundle, found.digest, found.first_used_at, found.manifest, card)


def _card(settings: Settings, bundle: str) -> str | None:
    found = bundle_folders.read(settings.bundle)
    return found.card if found is not None and found.manifest.bundle_id == bundle else None
