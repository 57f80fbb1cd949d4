"""Exports of sessions, turns or a ConvoKit corpus. Streamed; every export is audited."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, HTTPException, Query
from fastapi.responses import StreamingResponse

from stream_app.contracts.scores import SessionStatus
from stream_app.store import audit
from stream_app.store.audit import AuditAction
from stream_app.store.people import Person, Right
from stream_app.store.queries import bundle_info
from stream_app.store.queries.sessions import SessionFilter
from stream_app.web.api.fields import Identifier, Moment, Team
from stream_app.web.auth import Exporter, needs
from stream_app.web.exports import convokit, paging
from stream_app.web.exports.columns import SESSIONS, Column, turn_columns
from stream_app.web.exports.files import as_attachment, as_file
from stream_app.web.exports.formats import MEDIA_TYPES, Format
from stream_app.web.services import Services, ServicesDep

router = APIRouter(prefix="/exports", tags=["exports"])


def _session_filter(
    status: Annotated[
        SessionStatus | None, Query(description="Only sessions with this status")
    ] = None,
    team: Team = None,
    domain: Annotated[Identifier | None, Query(description="Only this domain")] = None,
    channel: Annotated[Identifier | None, Query(description="Only this channel")] = None,
    started_from: Annotated[
        Moment | None, Query(description="Started at this time or later")
    ] = None,
    started_before: Annotated[Moment | None, Query(description="Started before this time")] = None,
) -> SessionFilter:
    """Sessions to export; by default all within the person's access scope."""
    return SessionFilter(status, team, domain, channel, None, started_from, started_before)


SessionFilterDep = Annotated[SessionFilter, Depends(_session_filter)]
ChosenFormat = Annotated[Format, Query(alias="format", description="The file's format")]


_OF_HEADS: Final = (
    "\n| `expressed_NAME` | integer | Level 0-2 of each further level head; empty: abstained |"
    "\n| `perceived_NAME` | number | 0-1, probability of each perceived head |"
)


def _file(
    media_types: list[str], columns: list[Column] | None = None, more: str = ""
) -> dict[int | str, Any]:
    about = ""
    if columns is not None:
        lines = [f"| `{c.name}` | {c.kind.value} | {c.meaning} |" for c in columns]
        about = (
            "\n\n"
            + "\n".join(("| column | type | meaning |", "| --- | --- | --- |", *lines))
            + more
        )
    binary = {"schema": {"type": "string", "format": "binary"}}
    return {
        200: {
            "description": "The file, streamed." + about,
            "content": {name.partition(";")[0]: binary for name in media_types},
        },
    }


@router.get(
    "/sessions",
    response_class=StreamingResponse,
    responses=_file(list(MEDIA_TYPES.values()), SESSIONS),
)
@needs(Right.READ_SCORES)
def export_sessions(
    services: ServicesDep,
    person: Exporter,
    chosen: SessionFilterDep,
    wanted: ChosenFormat = Format.CSV,
) -> StreamingResponse:
    """One row per session. In CSV, text that looks like a formula is prefixed with `'`."""
    _audit(services, person, f"sessions as {wanted.value}")
    pages = paging.session_rows(services.store, person, chosen)
    return as_file(wanted, SESSIONS, pages, "sessions")


@router.get(
    "/turns",
    response_class=StreamingResponse,
    responses=_file(list(MEDIA_TYPES.values()), turn_columns([], with_text=True), _OF_HEADS),
)
@needs(Right.READ_SCORES)
def export_turns(
    services: ServicesDep,
    person: Exporter,
    chosen: SessionFilterDep,
    wanted: ChosenFormat = Format.CSV,
    text: Annotated[
        bool, Query(description="Include the redacted text; every session read is audited")
    ] = False,
) -> StreamingResponse:
    """One row per turn, with scores of the bundle that last scored the session."""
    with_text = _with_text(person, text)
    restricted = services.settings.restrictions.everywhere
    heads = bundle_info.heads(services.store)
    columns = turn_columns(heads, with_text=with_text, restricted=restricted)
    _audit(services, person, f"turns as {wanted.value}{' with text' if with_text else ''}")
    pages = paging.turn_rows(services.store, person, chosen, with_text=with_text)
    return as_file(wanted, columns, pages, "turns")


@router.get("/convokit", response_class=StreamingResponse, responses=_file(["application/zip"]))
@needs(Right.READ_SCORES)
def export_convokit(
    services: ServicesDep,
    person: Exporter,
    chosen: SessionFilterDep,
    text: Annotated[
        bool | None,
        Query(description="Include the redacted text; default: if your role may read it"),
    ] = None,
) -> StreamingResponse:
    """A ConvoKit corpus folder as a zip; with text, `rapport score FOLDER` can read it."""
    with_text = _with_text(person, person.reads_transcripts if text is None else text)
    _audit(services, person, f"ConvoKit{' with text' if with_text else ''}")
    restricted = services.settings.restrictions.everywhere
    pieces = convokit.corpus(
        services.store, person, chosen, with_text=with_text, restricted=restricted
    )
    return as_attachment(pieces, "application/zip", f"{convokit.FOLDER}.zip")


def _with_text(person: Person, asked: bool) -> bool:
    if asked and not person.reads_transcripts:
        raise HTTPException(403, "this role or token may not read transcripts")
    return asked


def _audit(services: Services, person: Person, what: str) -> None:
    audit.record(services.store, person.name, AuditAction.EXPORT, detail=what)
