"""Pages of administrators: health, accounts, settings, audit. None shows a transcript."""

from fastapi import APIRouter

from stream_app.web.console.admin import accounts, audit_trail, overview, service

router = APIRouter()
for part in (overview, accounts, service, audit_trail):
    router.include_router(part.router)

__all__ = ["router"]
