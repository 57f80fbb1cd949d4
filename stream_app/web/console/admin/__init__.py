"""Pages of administrators: health, accounts, settings, erasure, audit. None shows a transcript."""

from fastapi import APIRouter

from stream_app.web.console.admin import (
    accounts,
    audit_trail,
    bundles,
    consent,
    erasure,
    overview,
    service,
)

router = APIRouter()
for part in (overview, accounts, service, bundles, consent, erasure, audit_trail):
    router.include_router(part.router)

__all__ = ["router"]
