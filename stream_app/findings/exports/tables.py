"""Writes a table of the API's exports to a file, without names, notes and text.

For text, it acts as an account of an approved study.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from msgspec import Struct

from stream_app.core.session.restrictions import Outputs
from stream_app.errors import RapportError
from stream_app.findings.exports import convokit, paging
from stream_app.findings.exports.alerts import ALERTS, alert_rows
from stream_app.findings.exports.columns import Column, Row, session_columns, turn_columns
from stream_app.findings.exports.formats import Format, encode
from stream_app.findings.exports.judgements import (
    dispute_columns,
    dispute_rows,
    rating_columns,
    rating_rows,
)
from stream_app.findings.exports.rollups import RollUp, rollup_columns, rollup_rows
from stream_app.store.accounts import audit, studies
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.sessions import bundle_info
from stream_app.store.sessions.sessions import SessionFilter
from stream_app.store.stream.repository import Store

OPERATOR: Final = Person(audit.COMMAND_LINE, PersonRole.ANALYST)
TABLES: Final = ("sessions", "turns", "convokit", "ratings", "disputes", "alerts", "rollups")
WITH_TEXT: Final = ("turns", "convokit")


class ExportRefused(RapportError):
    """The options of an export do not fit together."""


class ForStudy(Struct, frozen=True):
    """The study that text is exported for, and its account."""

    study_id: str
    account: str


class Wanted(Struct, frozen=True):
    """``table``: one of ``TABLES``; ``rollup`` for the table of roll-ups."""

    table: str
    chosen: SessionFilter
    form: Format = Format.CSV
    rollup: RollUp = RollUp.WEEK_MEASURE
    study: ForStudy | None = None


def write(
    store: Store, wanted: Wanted, file: Path, restricted: Outputs, intents: Sequence[str]
) -> int:
    """Write one export to a new file that only this user may read; returns its size in bytes.

    ``restricted``: what a policy withholds everywhere. ``intents``: the names of those in force.

    Raises:
        ExportRefused: the table cannot have text, or the account does not exist.
        StudyRefused: the account is not in the study, or the study has ended.
        ViewsMissing: `rapport db views` has not created the roll-ups' views.
    """
    study = wanted.study
    person = OPERATOR if study is None else _of_study(store, wanted.table, study)
    pieces = _pieces(store, person, wanted, restricted, intents)
    detail = f"{wanted.table} as {wanted.form.value}"
    if study is not None:
        detail += f" with text for study {study.study_id}, {study.account}"
    audit.record(store, person.name, AuditAction.EXPORT, detail=detail)
    return _write(file, pieces)


def _of_study(store: Store, table: str, study: ForStudy) -> Person:
    if table not in WITH_TEXT:
        raise ExportRefused(f"only {' and '.join(WITH_TEXT)} have text; leave out --study")
    account = People(store).find(study.account)
    if account is None:
        raise ExportRefused(f"there is no account {study.account}")
    studies.require(store, account.name, study.study_id)
    return replace(account, name=audit.COMMAND_LINE)


def _pieces(
    store: Store,
    person: Person,
    wanted: Wanted,
    restricted: Outputs,
    known: Sequence[str],
) -> Iterator[bytes]:
    chosen, with_text = wanted.chosen, wanted.study is not None
    study = wanted.study.study_id if wanted.study is not None else None
    pages: Iterator[Sequence[Row]]
    columns: list[Column]
    match wanted.table:
        case "convokit":
            return convokit.corpus(
                store, person, chosen, with_text=with_text, study=study, restricted=restricted
            )
        case "sessions":
            columns = session_columns(with_text=False)
            pages = paging.session_rows(store, person, chosen, with_text=False)
        case "turns":
            heads = bundle_info.heads(store)
            columns = turn_columns(heads, with_text=with_text, restricted=restricted, intents=known)
            pages = paging.turn_rows(store, person, chosen, with_text=with_text, study=study)
        case "ratings":
            columns = rating_columns(with_words=False)
            pages = rating_rows(store, person, chosen)
        case "disputes":
            columns = dispute_columns(with_words=False)
            pages = dispute_rows(store, person, chosen)
        case "alerts":
            columns, pages = ALERTS, alert_rows(store, person, chosen)
        case _:
            columns = rollup_columns(store, wanted.rollup)
            pages = rollup_rows(store, person, wanted.rollup)
    return encode(wanted.form, columns, pages)


def _write(file: Path, pieces: Iterator[bytes]) -> int:
    written = 0
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(opened, "wb") as sink:
        for piece in pieces:
            written += sink.write(piece)
    return written
