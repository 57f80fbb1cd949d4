"""Exports of what people said of the model's scores: ratings, and disputes with answers."""

from collections.abc import Iterator, Sequence
from typing import Final

from stream_app.analytics.views.columns import Kind
from stream_app.findings.exports.columns import Column, Row, attributes_of, columns_of, with_session
from stream_app.findings.exports.paging import cards
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.sessions.sessions import SessionCard, SessionFilter
from stream_app.store.stream.repository import Store
from stream_app.store.work import disputes, ratings
from stream_app.store.work.disputes import Dispute
from stream_app.store.work.ratings import Rating

_RATED: Final = with_session(
    "rating_id",
    "Identifies the rating",
    ("seq", Kind.INTEGER, "The rated turn; empty: the whole session"),
    ("head", Kind.TEXT, "A head, or `rating` of a session"),
    ("value", Kind.INTEGER, "Index of the head's label; `rating` of a session: 1-5"),
    ("sample_id", Kind.TEXT, "The calibration sample in which it was given, blind"),
    ("rater", Kind.TEXT, "The account; for analysts a number, the same throughout the file"),
    ("rated_at", Kind.TIME, "UTC"),
)
_COMMENTED: Final = columns_of(
    ("comment", Kind.TEXT, "The rater's on the turn or session, redacted; not for analysts"),
)
_CONTESTED: Final = with_session(
    "dispute_id",
    "Identifies the dispute",
    ("seq", Kind.INTEGER, "The turn"),
    ("head", Kind.TEXT, "The head whose score is disputed"),
    ("bundle", Kind.TEXT, "The bundle that gave the score"),
    ("value", Kind.INTEGER, "The model's score, as the index of a label"),
    ("proposed", Kind.INTEGER, "The counsellor's proposal; empty: none"),
    ("disputed_at", Kind.TIME, "UTC"),
    ("decision", Kind.TEXT, "upheld or rejected; empty: not decided"),
    ("decided_at", Kind.TIME, "UTC"),
)
_IN_WORDS: Final = columns_of(
    ("person", Kind.TEXT, "The account that disputes; not for analysts"),
    ("note", Kind.TEXT, "Its reason, redacted; not for analysts"),
    ("decided_by", Kind.TEXT, "The account that decided; not for analysts"),
    ("answer", Kind.TEXT, "Its answer, redacted; not for analysts"),
)


def rating_columns(*, with_words: bool) -> list[Column]:
    """Columns of the table of ratings; ``with_words``: comments, too."""
    return [*_RATED, *(_COMMENTED if with_words else [])]


def dispute_columns(*, with_words: bool) -> list[Column]:
    """Columns of the table of disputes; ``with_words``: notes, answers and names, too."""
    return [*_CONTESTED, *(_IN_WORDS if with_words else [])]


def rating_rows(store: Store, person: Person, chosen: SessionFilter) -> Iterator[Sequence[Row]]:
    """Yield pages of ratings; blind ones for analysts only, who rate nothing themselves."""
    analyst = person.role is PersonRole.ANALYST
    numbers: dict[str, str] = {}
    for page in cards(store, person, chosen):
        by_id = {card.session_id: card for card in page}
        found = ratings.of_sessions(store, person, list(by_id), blind=analyst)
        rows = []
        for each in found:
            number = numbers.setdefault(each.person, f"rater-{len(numbers) + 1}")
            rows.append(_rating(by_id[each.session_id], each, number if analyst else each.person))
        yield rows


def dispute_rows(store: Store, person: Person, chosen: SessionFilter) -> Iterator[Sequence[Row]]:
    """Yield pages of disputes; counsellors get their own."""
    own = person.name if person.role is PersonRole.COUNSELLOR else None
    for page in cards(store, person, chosen):
        by_id = {card.session_id: card for card in page}
        found = disputes.of_sessions(store, person.scope, list(by_id), own)
        yield [_dispute(by_id[each.session_id], each) for each in found]


def _rating(card: SessionCard, given: Rating, rater: str) -> Row:
    return {
        **attributes_of(card),
        "rating_id": given.rating_id,
        "seq": given.seq,
        "head": given.head,
        "value": given.value,
        "sample_id": given.sample_id,
        "rater": rater,
        "rated_at": given.at,
        "comment": given.comment,
    }


def _dispute(card: SessionCard, given: Dispute) -> Row:
    return {
        **attributes_of(card),
        "dispute_id": given.dispute_id,
        "seq": given.seq,
        "head": given.head,
        "bundle": given.bundle,
        "value": given.value,
        "proposed": given.proposed,
        "disputed_at": given.at,
        "decision": given.decision.value if given.decision else None,
        "decided_at": given.decided_at,
        "person": given.person,
        "note": given.note,
        "decided_by": given.decided_by,
        "answer": given.answer,
    }
