"""Everything that is stored about one person, for their right of access.

``DECISIONS`` says for each table what belongs to the person, or why nothing does; a test fails for
a table without a decision. Other people stay out: a counsellor does not get the clients' words,
nobody gets other speakers' pseudonyms or the names of staff. A client gets the counsellors' words,
because they were addressed to the client.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection, Table

from stream_app.contracts.events import Role
from stream_app.store.database import tables
from stream_app.store.database.audit_subjects import COUNSELLOR, SESSION
from stream_app.store.keys.session_keys import place, unseal_or_none
from stream_app.store.stream.repository import Store

SESSIONS_PER_QUERY: Final = 200
STAFF: Final = "staff"
ANOTHER_PERSON: Final = "another person"
Condition = sa.ColumnElement[bool]
Row = dict[str, Any]


WRITTEN: Final = frozenset(
    {"note", "answer", "comment", "goal", "detail", "reason", "end_reason", "source", "title"}
    | {"protocol", "recipient", "target", "name", "query"}
)
"""Columns with words that staff write or that name them; in ``interventions`` also ``text``."""


class Subject(Struct, frozen=True):
    """A person: pseudonym, accounts, and role in each session; ``staff``: accounts of others."""

    pseudonym: str
    accounts: list[str]
    sessions: dict[str, Role]
    staff: tuple[str, ...] = ()


class Included(Struct, frozen=True):
    """The part of a table that belongs to a person.

    ``by_session``: condition for rows of some of the person's sessions. ``by_person``: condition
    for rows that name the person. ``without``: columns that are left out. ``sealed``: encrypted
    columns, with the columns of their place; the first one names the key.
    """

    meaning: str
    by_session: Callable[[Subject, Sequence[str]], Condition] | None = None
    by_person: Callable[[Subject], Condition] | None = None
    without: frozenset[str] = frozenset()
    sealed: Mapping[str, tuple[str, ...]] = {}


class LeftOut(Struct, frozen=True):
    """A table with nothing for the archive; ``reason``: why."""

    reason: str


def find_subject(store: Store, speaker_id: str) -> Subject | None:
    """The person with this ``speaker_id`` of the events; None if nothing is stored about them.

    Who spoke in both roles in a session counts as its client.
    """
    pseudonym = store.privacy.pseudonym(speaker_id)
    speakers, people = tables.session_speakers, tables.people
    took_part = (
        sa.select(speakers.c.session_id, speakers.c.role)
        .where(speakers.c.speaker == pseudonym)
        .order_by(speakers.c.session_id, speakers.c.role.desc())
    )
    accounts = sa.select(people.c.name).where(people.c.speaker == pseudonym).order_by(people.c.name)
    named = sa.select(tables.consents.c.session_id).where(tables.consents.c.speaker == pseudonym)
    with store.reading() as connection:
        sessions = {name: Role(role) for name, role in connection.execute(took_part)}
        for session_id in connection.scalars(named):
            sessions.setdefault(session_id, Role.CLIENT)
        own = list(connection.scalars(accounts))
        others = sa.select(people.c.name).where(people.c.name.not_in(own)).order_by(people.c.name)
        found = Subject(pseudonym, own, sessions, tuple(connection.scalars(others)))
    return found if found.sessions or found.accounts else None


def rows_of(store: Store, subject: Subject, table: Table) -> Iterator[Row]:
    """The person's rows of a table, decrypted, each once."""
    decision = DECISIONS[table.name]
    if isinstance(decision, LeftOut):
        return
    seen: set[tuple[Any, ...]] = set()
    with store.reading() as connection:
        for condition in _conditions(decision, subject):
            query = sa.select(table).where(condition).order_by(*table.primary_key)
            found = [dict(row) for row in connection.execute(query).mappings()]
            keys = _keys(store, connection, decision, found)
            for row in found:
                identity = tuple(row[column.name] for column in table.primary_key)
                if identity not in seen:
                    seen.add(identity)
                    yield _shown(_opened(table, decision, row, keys), decision, subject, table)


def _conditions(decision: Included, subject: Subject) -> Iterator[Condition]:
    if decision.by_session is not None:
        for some in _batches(subject.sessions):
            yield decision.by_session(subject, some)
    if decision.by_person is not None:
        yield decision.by_person(subject)


def _keys(
    store: Store, connection: Connection, decision: Included, found: list[Row]
) -> dict[str, bytes]:
    owners = {row[names[0]] for names in decision.sealed.values() for row in found}
    keys: dict[str, bytes] = {}
    for some in _batches(owner for owner in owners if owner):
        keys |= store.keys.load(connection, some)
    return keys


def _batches(names: Iterable[str]) -> Iterator[Sequence[str]]:
    ordered = sorted(names)
    for first in range(0, len(ordered), SESSIONS_PER_QUERY):
        yield ordered[first : first + SESSIONS_PER_QUERY]


def _opened(table: Table, decision: Included, row: Row, keys: dict[str, bytes]) -> Row:
    texts = {
        name: unseal_or_none(
            keys.get(row[names[0]]),
            row[name],
            place(table.c[name], *(row[part] for part in names)),
        )
        for name, names in decision.sealed.items()
    }
    return {**row, **texts}


def _shown(row: Row, decision: Included, subject: Subject, table: Table) -> Row:
    """The row without other people and without columns that are left out."""
    shown = {name: value for name, value in row.items() if name not in decision.without}
    for name in ("person", "decided_by", "reviewer", "received_by", "recipient"):
        if name in shown and shown[name] is not None and shown[name] not in subject.accounts:
            shown[name] = STAFF
    written = WRITTEN | {"text"} if table is tables.interventions else WRITTEN
    for name in written & shown.keys():
        if isinstance(shown[name], str):
            shown[name] = _names_of(subject.staff).sub(STAFF, shown[name])
    if shown.get("counsellor") not in (None, subject.pseudonym):
        shown["counsellor"] = ANOTHER_PERSON
    speaker = shown.get("speaker")
    if speaker is not None and speaker != subject.pseudonym:
        shown["speaker"] = ANOTHER_PERSON
        own = subject.sessions[row["session_id"]]
        unseen = own is not Role.CLIENT or row.get("role") == Role.SUPERVISOR.value
        if table is tables.turns and unseen:
            shown["text"] = None
    return shown


@lru_cache(maxsize=1)
def _names_of(staff: tuple[str, ...]) -> re.Pattern[str]:
    """Finds these names as whole words in texts."""
    longest_first = sorted(staff, key=len, reverse=True)
    any_name = "|".join(map(re.escape, longest_first)) or "(?!)"
    return re.compile(rf"(?<!\w)(?:{any_name})(?!\w)", re.IGNORECASE)


def _in(table: Table) -> Callable[[Subject, Sequence[str]], Condition]:
    return lambda _, some: table.c.session_id.in_(some)


def _of_clients(table: Table) -> Callable[[Subject, Sequence[str]], Condition]:
    """Rows of sessions in which the person is the client."""

    def condition(subject: Subject, some: Sequence[str]) -> Condition:
        own = [each for each in some if subject.sessions.get(each) is Role.CLIENT]
        return table.c.session_id.in_(own)

    return condition


def _named(column: sa.Column[Any]) -> Callable[[Subject], Condition]:
    """Rows with the person's pseudonym."""
    return lambda subject: column == subject.pseudonym


def _account(column: sa.Column[Any]) -> Callable[[Subject], Condition]:
    """Rows of the person's accounts."""
    return lambda subject: column.in_(subject.accounts)


def _own_turns(table: Table) -> Callable[[Subject, Sequence[str]], Condition]:
    """Rows about the person's own turns, and about whole sessions."""

    def condition(subject: Subject, some: Sequence[str]) -> Condition:
        turns = tables.turns.alias("own")
        own = sa.exists().where(
            turns.c.session_id == table.c.session_id,
            turns.c.seq == table.c.seq,
            turns.c.speaker == subject.pseudonym,
        )
        return table.c.session_id.in_(some) & (own | table.c.seq.is_(None))

    return condition


def _audited(kind: str, values: Sequence[str]) -> sa.Select[tuple[str]]:
    """Subjects of the audit trail that stand for these sessions or counsellors."""
    table = tables.audit_subjects
    return sa.select(table.c.subject).where(table.c.kind == kind, table.c.value.in_(values))


def _either(*conditions: Callable[[Subject], Condition]) -> Callable[[Subject], Condition]:
    return lambda subject: sa.or_(*(condition(subject) for condition in conditions))


_INTERNAL: Final = LeftOut("about no person: the service's own bookkeeping")
_NUMBERS: Final = LeftOut(
    "vectors, counts and masked words from which scores are computed; the words are in the turns"
)
DECISIONS: Final[Mapping[str, Included | LeftOut]] = {
    "sessions": Included(
        "Conversations that the person took part in",
        _in(tables.sessions),
        sealed={"end_reason": ("session_id",)},
    ),
    "session_speakers": Included(
        "The person's role in each conversation",
        by_person=_named(tables.session_speakers.c.speaker),
    ),
    "session_assignments": Included(
        "Conversations that a supervisor let the person read",
        by_person=_named(tables.session_assignments.c.speaker),
    ),
    "consents": Included(
        "Consent that was given, refused or withdrawn for these conversations",
        _in(tables.consents),
        _named(tables.consents.c.speaker),
    ),
    "turns": Included(
        "The person's own words, with personal details masked; for a client also what others wrote "
        "to the client",
        _in(tables.turns),
        sealed={"text": ("session_id", "seq")},
    ),
    "turn_scores": Included("Scores of the person's own turns", _own_turns(tables.turn_scores)),
    "session_scores": Included("Scores of the conversations", _in(tables.session_scores)),
    "alerts": Included("Alerts that the conversations raised", _in(tables.alerts)),
    "alert_actions": Included(
        "What staff did about these alerts; what the person did about any",
        _in(tables.alert_actions),
        _account(tables.alert_actions.c.person),
        sealed={"note": ("session_id", "action_id")},
    ),
    "interventions": Included(
        "What supervisors told the counsellor of these conversations; what the person did",
        _in(tables.interventions),
        _account(tables.interventions.c.person),
        sealed={"text": ("session_id", "intervention_id")},
    ),
    "mutes": Included(
        "Times without notifications for these conversations, and those that the person set",
        _in(tables.mutes),
        _account(tables.mutes.c.person),
        sealed={"reason": ("mute_id",)},
    ),
    "deliveries": Included(
        "Notifications that were sent about these alerts",
        lambda _, some: tables.deliveries.c.alert_id.in_(
            sa.select(tables.alerts.c.alert_id).where(tables.alerts.c.session_id.in_(some))
        ),
        without=frozenset({"notification_id", "problem"}),
    ),
    "escalations": Included(
        "Notifications that followed because nobody had answered these alerts",
        _in(tables.escalations),
        without=frozenset({"problem"}),
    ),
    "outcomes": Included("Likes, replies, follows and ratings", _in(tables.outcomes)),
    "questionnaires": Included(
        "Questionnaires that the client filled in", _of_clients(tables.questionnaires)
    ),
    "ratings": Included(
        "People's ratings of the person's turns and of whole conversations; the person's ratings",
        _own_turns(tables.ratings),
        _account(tables.ratings.c.person),
    ),
    "rating_comments": Included(
        "What people wrote about the person's turns and whole conversations when rating them; "
        "what the person wrote",
        _own_turns(tables.rating_comments),
        _account(tables.rating_comments.c.person),
        sealed={"comment": ("session_id", "comment_id")},
    ),
    "disputes": Included(
        "Disputes about scores of the person's turns",
        _own_turns(tables.disputes),
        _account(tables.disputes.c.person),
        sealed={"note": ("session_id", "dispute_id"), "answer": ("session_id", "dispute_id")},
    ),
    "reviews": Included(
        "Reviews of the conversations by supervisors; those that the person made or assigned",
        _in(tables.reviews),
        _either(_account(tables.reviews.c.person), _account(tables.reviews.c.reviewer)),
    ),
    "review_answers": Included(
        "Answers in these reviews",
        _in(tables.review_answers),
        lambda subject: tables.review_answers.c.review_id.in_(
            sa.select(tables.reviews.c.review_id).where(
                tables.reviews.c.reviewer.in_(subject.accounts)
            )
        ),
    ),
    "review_comments": Included(
        "What reviewers wrote about the person's turns; what the person wrote in reviews",
        _own_turns(tables.review_comments),
        _account(tables.review_comments.c.person),
        sealed={"comment": ("session_id", "comment_id")},
    ),
    "proposals": Included(
        "A language model's answers to questions about the conversations, and in which turn the "
        "words stand that it quoted",
        _in(tables.proposals),
    ),
    "coaching_goals": Included(
        "Coaching goals of the person; those that the person agreed on with counsellors",
        by_person=_either(
            _named(tables.coaching_goals.c.counsellor), _account(tables.coaching_goals.c.person)
        ),
        sealed={"goal": ("goal_id",)},
    ),
    "samples": Included(
        "Calibration samples that the person made", by_person=_account(tables.samples.c.person)
    ),
    "sample_turns": Included(
        "The person's turns in calibration samples", _own_turns(tables.sample_turns)
    ),
    "audit": Included(
        "Who read or changed what is stored about the person, and what the person did",
        lambda _, some: tables.audit.c.subject.in_(_audited(SESSION, some)),
        _either(
            _account(tables.audit.c.person),
            lambda subject: tables.audit.c.subject.in_(_audited(COUNSELLOR, [subject.pseudonym])),
        ),
        without=frozenset({"hash"}),
    ),
    "audit_subjects": Included(
        "What the `subject` of an entry in `audit` refers to",
        lambda _, some: tables.audit_subjects.c.subject.in_(_audited(SESSION, some)),
        lambda subject: tables.audit_subjects.c.subject.in_(
            _audited(COUNSELLOR, [subject.pseudonym])
        ),
        without=frozenset({"salt"}),
    ),
    "baselines": Included(
        "Means of a counsellor's ended conversations",
        by_person=lambda subject: (
            (tables.baselines.c.scope == Role.COUNSELLOR.value)
            & (tables.baselines.c.key == subject.pseudonym)
        ),
    ),
    "rollup_sessions": Included(
        "The conversations as counted in reports", _in(tables.rollup_sessions)
    ),
    "rollup_turns": Included(
        "The turns of the conversations as counted in reports", _in(tables.rollup_turns)
    ),
    "rollup_counsellors": Included(
        "A counsellor's first day", by_person=_named(tables.rollup_counsellors.c.speaker)
    ),
    "rollup_cells": Included(
        "A counsellor's numbers by week", by_person=_named(tables.rollup_cells.c.counsellor)
    ),
    "rollup_means": Included(
        "A counsellor's means by week", by_person=_named(tables.rollup_means.c.counsellor)
    ),
    "people": Included(
        "The person's account",
        by_person=_named(tables.people.c.speaker),
        without=frozenset({"password_hash"}),
    ),
    "access_tokens": Included(
        "The account's tokens",
        by_person=_account(tables.access_tokens.c.person),
        without=frozenset({"digest"}),
    ),
    "saved_views": Included(
        "Filters that the person saved, and colleagues' filters for the person",
        by_person=_either(
            _account(tables.saved_views.c.person), _named(tables.saved_views.c.counsellor)
        ),
    ),
    "pins": Included(
        "Sessions that the person keeps at the top of the live wall",
        by_person=_account(tables.pins.c.person),
    ),
    "presence": LeftOut("who has a session's page open at the moment; deleted after minutes"),
    "studies": Included(
        "Studies that the person may analyse", by_person=_account(tables.studies.c.person)
    ),
    "rule_versions": Included(
        "Versions of the alert rules that the person saved",
        by_person=_account(tables.rule_versions.c.person),
    ),
    "rule_adoptions": Included(
        "Versions of the alert rules that the person adopted",
        by_person=_account(tables.rule_adoptions.c.person),
    ),
    "drift_changes": Included(
        "Changes of the data or the model that the person acknowledged",
        by_person=_account(tables.drift_changes.c.person),
    ),
    "archived_sessions": Included(
        "Conversations whose numbers were moved to the archive", _in(tables.archived_sessions)
    ),
    "holds": LeftOut("legal holds are about a proceeding; its parties decide what is disclosed"),
    "session_states": _NUMBERS,
    "window_turns": _NUMBERS,
    "session_keys": LeftOut("keys of encrypted text"),
    "erasures": LeftOut("keyed digests of erased conversations"),
    "erasure_receipts": LeftOut("what the erasure of a conversation removed; it has no content"),
    "session_numbers": LeftOut("the number of a conversation's next turn"),
    "shadow_bundles": LeftOut("manifests of bundles that were tried beside the one in force"),
    "shadow_scores": Included(
        "Scores of the person's own turns by a bundle that was tried",
        _own_turns(tables.shadow_scores),
    ),
    "ingest_keys": LeftOut("keyed digests of requests of programs, with the numbers of turns"),
    "sign_in_attempts": LeftOut("keyed digests of names and addresses, counted"),
    "outbox": LeftOut("copies of scores and alerts that are about to be published"),
    "bundles": _INTERNAL,
    "installation": _INTERNAL,
    "log_positions": _INTERNAL,
    "notification_targets": _INTERNAL,
    "rollup_marks": _INTERNAL,
    "rollup_turn_days": _INTERNAL,
}
