"""Exports of tables or a ConvoKit corpus. Streamed; every export is audited."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, HTTPException, Query
from fastapi.responses import StreamingResponse

from stream_app.contracts.scores import SessionStatus
from stream_app.findings.exports import convokit, paging
from stream_app.findings.exports.alerts import ALERTS, alert_rows
from stream_app.findings.exports.columns import Column, Row, session_columns, turn_columns
from stream_app.findings.exports.files import as_attachment, as_file
from stream_app.findings.exports.formats import MEDIA_TYPES, Format
from stream_app.findings.exports.judgements import (
    dispute_columns,
    dispute_rows,
    rating_columns,
    rating_rows,
)
from stream_app.findings.exports.rollups import RollUp, rollup_columns, rollup_rows
from stream_app.store.accounts import audit, studies
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole, Right
from stream_app.store.sessions import bundle_info
from stream_app.store.sessions.sessions import SessionFilter
from stream_app.store.stream.repository import Store
from stream_app.web.api.analyses import AnalysisReader
from stream_app.web.http.fields import Identifier, Moment, Team
from stream_app.web.problems import problem_responses
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Exporter, TextExporter, needs

router = APIRouter(prefix="/exports", tags=["exports"])


async def _session_filter(
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


Rows = Callable[[Store, Person, SessionFilter], Iterator[Sequence[Row]]]


@dataclass(frozen=True, slots=True)
class TableRequest:
    """A request for a table about sessions."""

    services: ServicesDep
    person: Exporter
    chosen: SessionFilterDep
    wanted: ChosenFormat = Format.CSV

    def answer(self, name: str, columns: list[Column], rows: Rows) -> StreamingResponse:
        """The file, after recording the export."""
        _audit(self.services, self.person, f"{name} as {self.wanted.value}")
        pages = rows(self.services.store, self.person, self.chosen)
        return as_file(self.wanted, columns, pages, name)


TableRequestDep = Annotated[TableRequest, Depends()]
Study = Annotated[
    Identifier | None,
    Query(description="The approved study that the export is for; accounts of a study need it"),
]


@dataclass(frozen=True, slots=True)
class Grant:
    """Whether an export may have text, and the study that it is for."""

    with_text: bool
    study: str | None

    @property
    def words(self) -> str:
        """Words for the audit trail."""
        text = " with text" if self.with_text else ""
        return text if self.study is None else f"{text} for study {self.study}"


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
    responses=_file(list(MEDIA_TYPES.values()), session_columns(with_text=True)),
)
@needs(Right.READ_SCORES)
def export_sessions(
    services: ServicesDep,
    person: TextExporter,
    chosen: SessionFilterDep,
    wanted: ChosenFormat = Format.CSV,
    text: Annotated[
        bool,
        Query(description="Include the redacted `end_reason`; every session read is audited"),
    ] = False,
    study: Study = None,
) -> StreamingResponse:
    """One row per session. In CSV, text that looks like a formula is prefixed with `'`."""
    grant = _grant(services, person, study, text=text)
    _audit(services, person, f"sessions as {wanted.value}{grant.words}")
    pages = paging.session_rows(
        services.store, person, chosen, with_text=grant.with_text, study=grant.study
    )
    return as_file(wanted, session_columns(with_text=grant.with_text), pages, "sessions")


@router.get(
    "/turns",
    response_class=StreamingResponse,
    responses=_file(list(MEDIA_TYPES.values()), turn_columns([], with_text=True), _OF_HEADS),
)
@needs(Right.READ_SCORES)
def export_turns(
    services: ServicesDep,
    person: TextExporter,
    chosen: SessionFilterDep,
    wanted: ChosenFormat = Format.CSV,
    text: Annotated[
        bool, Query(description="Include the redacted text; every session read is audited")
    ] = False,
    study: Study = None,
) -> StreamingResponse:
    """One row per turn, with scores of the bundle that last scored the session."""
    grant = _grant(services, person, study, text=text)
    restricted = services.settings.restrictions.everywhere
    heads = bundle_info.heads(services.store)
    known = services.intents.read().names
    columns = turn_columns(heads, with_text=grant.with_text, restricted=restricted, intents=known)
    _audit(services, person, f"turns as {wanted.value}{grant.words}")
    pages = paging.turn_rows(
        services.store, person, chosen, with_text=grant.with_text, study=grant.study
    )
    return as_file(wanted, columns, pages, "turns")


@router.get("/convokit", response_class=StreamingResponse, responses=_file(["application/zip"]))
@needs(Right.READ_SCORES)
def export_convokit(
    services: ServicesDep,
    person: TextExporter,
    chosen: SessionFilterDep,
    text: Annotated[
        bool | None,
        Query(description="Include the redacted text; default: if your role may read it"),
    ] = None,
    study: Study = None,
) -> StreamingResponse:
    """A ConvoKit corpus folder as a zip; with text, `rapport score FOLDER` can read it."""
    wanted = person.reads_transcripts if text is None else text
    grant = _grant(services, person, study, text=wanted)
    _audit(services, person, f"ConvoKit{grant.words}")
    pieces = convokit.corpus(
        services.store,
        person,
        chosen,
        with_text=grant.with_text,
        study=grant.study,
        restricted=services.settings.restrictions.everywhere,
    )
    return as_attachment(pieces, "application/zip", f"{convokit.FOLDER}.zip")


@router.get(
    "/ratings",
    response_class=StreamingResponse,
    responses=_file(list(MEDIA_TYPES.values()), rating_columns(with_words=True)),
)
@needs(Right.READ_SCORES)
def export_ratings(asked: TableRequestDep) -> StreamingResponse:
    """One row per rating of a turn or session. Only analysts get blind ratings.

    Comments are only for people who may read transcripts.
    """
    columns = rating_columns(with_words=asked.person.reads_transcripts)
    return asked.answer("ratings", columns, rating_rows)


@router.get(
    "/disputes",
    response_class=StreamingResponse,
    responses=_file(list(MEDIA_TYPES.values()), dispute_columns(with_words=True)),
)
@needs(Right.READ_SCORES)
def export_disputes(asked: TableRequestDep) -> StreamingResponse:
    """One row per dispute, with its answer. Counsellors get their own."""
    columns = dispute_columns(with_words=asked.person.reads_transcripts)
    return asked.answer("disputes", columns, dispute_rows)


@router.get(
    "/alerts",
    response_class=StreamingResponse,
    responses=_file(list(MEDIA_TYPES.values()), ALERTS),
)
@needs(Right.READ_SCORES)
def export_alerts(asked: TableRequestDep) -> StreamingResponse:
    """One row per alert, with the answers of people."""
    return asked.answer("alerts", ALERTS, alert_rows)


@router.get(
    "/rollups",
    response_class=StreamingResponse,
    responses={**_file(list(MEDIA_TYPES.values())), **problem_responses(409)},
)
@needs(Right.READ_SCORES)
def export_rollups(
    services: ServicesDep,
    person: AnalysisReader,
    table: Annotated[
        RollUp,
        Query(description="Numbers by period, or means of measures (`…_measure`)"),
    ] = RollUp.WEEK_MEASURE,
    wanted: ChosenFormat = Format.CSV,
) -> StreamingResponse:
    """A roll-up of finished reporting months, with small cells hidden; see docs/analytics.md.

    A supervisor of a team gets its rows, of roll-ups by team.
    """
    pages = rollup_rows(services.store, person, table)
    _audit(services, person, f"roll-up {table.value} as {wanted.value}")
    columns = rollup_columns(services.store, table)
    return as_file(wanted, columns, pages, f"rollup-{table.value}")


def _grant(services: Services, person: Person, study: str | None, *, text: bool) -> Grant:
    """Decide about text; an account of a study exports nothing but for a study in progress.

    Raises:
        StudyRefused: the account's study has ended, or is another.
        HTTPException: 403 if the role may not read text.
    """
    if text and not person.reads_transcripts:
        raise HTTPException(403, "this role or token may not read transcripts")
    if person.role is PersonRole.STUDY:
        return Grant(text, studies.require(services.store, person.name, study).study_id)
    return Grant(text, None)


def _audit(services: Services, person: Person, what: str) -> None:
    audit.record(services.store, person.name, AuditAction.EXPORT, detail=what)
