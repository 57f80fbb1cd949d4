"""Reads sessions and turns for exports page by page, with bounded memory."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from stream_app.findings.exports.columns import Row, session_row, speaker_numbering, turn_row
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.sessions import sessions, transcripts
from stream_app.store.sessions.sessions import Order, SessionCard, SessionFilter
from stream_app.store.sessions.transcripts import TurnRead
from stream_app.store.stream.repository import Store

SESSIONS_PER_PAGE: Final = 200
TURNS_PER_PAGE: Final = 500


def cards(
    store: Store, person: Person, chosen: SessionFilter, audit_detail: str | None = None
) -> Iterator[list[SessionCard]]:
    """Yield pages of sessions, ordered by id.

    If ``audit_detail`` is given, records with it that the text of these sessions was read;
    otherwise the sessions have no words of their events.
    """
    cursor: str | None = None
    while True:
        page = sessions.find(
            store, person.scope, chosen, Order.ID, cursor, SESSIONS_PER_PAGE, curves=False
        )
        if audit_detail is not None:
            ids = [card.session_id for card in page.items]
            audit.record_all(store, person.name, AuditAction.READ_TRANSCRIPT, ids, audit_detail)
        with_text = audit_detail is not None
        yield [
            replace(card, end_reason=_words(store, person, card.end_reason) if with_text else None)
            for card in page.items
        ]
        cursor = page.next_cursor
        if cursor is None:
            return


def for_study(what: str, study: str | None) -> str:
    """Return the audit trail's detail of an export."""
    return what if study is None else f"{what} for study {study}"


def turns(
    store: Store, person: Person, session_id: str, *, with_text: bool
) -> Iterator[list[TurnRead]]:
    """Yield pages of a session's turns; for studies, text that was stored unmasked is masked."""
    after = -1
    while found := transcripts.read(
        store, person.scope, session_id, after_seq=after, limit=TURNS_PER_PAGE
    ):
        after = found[-1].seq
        yield [
            replace(turn, text=_words(store, person, turn.text) if with_text else None)
            for turn in found
        ]


def _words(store: Store, person: Person, text: str | None) -> str | None:
    """The text as this person may read it."""
    studies = text is not None and person.role is PersonRole.STUDY
    return store.privacy.masked(text) if text is not None and studies else text


def session_rows(
    store: Store,
    person: Person,
    chosen: SessionFilter,
    *,
    with_text: bool,
    study: str | None = None,
) -> Iterator[Sequence[Row]]:
    """Yield pages of session rows."""
    detail = for_study("export of sessions", study) if with_text else None
    for page in cards(store, person, chosen, detail):
        yield [session_row(card) for card in page]


def turn_rows(
    store: Store,
    person: Person,
    chosen: SessionFilter,
    *,
    with_text: bool,
    study: str | None = None,
) -> Iterator[Sequence[Row]]:
    """Yield pages of turn rows; short sessions share a page."""
    rows: list[Row] = []
    detail = for_study("export of turns", study) if with_text else None
    for page in cards(store, person, chosen, detail):
        for card in page:
            name = speaker_numbering()
            for found in turns(store, person, card.session_id, with_text=with_text):
                rows += [turn_row(card, turn, name(turn)) for turn in found]
                if len(rows) >= TURNS_PER_PAGE:
                    yield rows
                    rows = []
    yield rows
