"""Ratings are stored separately from scores, and only within the person's scope."""

from datetime import UTC, datetime

import pytest

from stream_app.contracts.scores import MECHANISMS
from stream_app.sealing.envelope import is_sealed
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure
from stream_app.store.sessions.scored_turns import InvalidJudgement, NotFound
from stream_app.store.stream.repository import Store
from stream_app.store.work import ratings
from stream_app.store.work.agreement import rated_turns
from stream_app.store.work.ratings import Judgement
from tests.store.batches import BUNDLE
from tests.store.judging import counsellor, fill, person, supervisor
from tests.store.reading import rows, stored_rows

ER = MECHANISMS[0]


def er(value: int, seq: int | None = 1, session: str = "north-0", head: str = ER) -> Judgement:
    return Judgement(session, seq, head, value)


def test_a_rating_does_not_change_the_models_score(store: Store) -> None:
    fill(store)
    before = rows(store, tables.turn_scores), rows(store, tables.session_scores)
    sue = supervisor(store)
    ratings.rate(store, sue.scope, sue.name, [er(2), er(4, None, head="rating")])
    assert (rows(store, tables.turn_scores), rows(store, tables.session_scores)) == before
    found = ratings.of_session(store, sue, "north-0")
    assert {(r.seq, r.head, r.value, r.person) for r in found} == {
        (1, ER, 2, "sue"),
        (None, "rating", 4, "sue"),
    }


def test_the_same_person_replaces_a_rating_and_another_adds_one(store: Store) -> None:
    fill(store)
    sue, ben = supervisor(store), supervisor(store, "ben")
    for who, value in ((sue, 0), (ben, 1), (sue, 2)):
        ratings.rate(store, who.scope, who.name, [er(value)])
    found = ratings.of_session(store, sue, "north-0")
    assert sorted((r.person, r.value) for r in found) == [("ben", 1), ("sue", 2)]


@pytest.mark.parametrize(
    "given",
    [
        er(3),
        er(-1),
        er(1, seq=0),  # client turns lack this head
        er(1, head="warmth"),
        er(6, None, head="rating"),
        er(0, None, head="rating"),
        er(1, None),
    ],
)
def test_an_invalid_value_is_rejected_and_nothing_is_stored(store: Store, given: Judgement) -> None:
    fill(store)
    sue = supervisor(store)
    with pytest.raises(InvalidJudgement):
        ratings.rate(store, sue.scope, sue.name, [er(1), given])
    assert rows(store, tables.ratings) == []


@pytest.mark.parametrize(
    "given", [er(1, session="south-0"), er(1, seq=99), er(3, None, "south-0", "rating")]
)
def test_sessions_outside_the_scope_are_not_found(store: Store, given: Judgement) -> None:
    fill(store)
    sue = supervisor(store)
    with pytest.raises(NotFound):
        ratings.rate(store, sue.scope, sue.name, [given])
    assert ratings.of_session(store, sue, "south-0") == []


def test_people_can_withdraw_only_their_own_ratings(store: Store) -> None:
    fill(store)
    sue = supervisor(store)
    [made] = ratings.rate(store, sue.scope, sue.name, [er(1)])
    with pytest.raises(NotFound):
        ratings.withdraw(store, "ben", made.rating_id)
    ratings.withdraw(store, "sue", made.rating_id)
    assert rows(store, tables.ratings) == []


def test_labels_of_other_heads_come_from_the_bundle(store: Store) -> None:
    fill(store, 1)
    heads = [
        {"name": "question", "kind": "categorical", "labels": ["none", "closed", "open"]},
        {"name": "talk_type", "kind": "categorical", "labels": ["change", "neutral", "sustain"]},
    ]
    heads[0]["roles"], heads[1]["roles"] = ["counsellor"], ["client"]
    with store.transaction() as connection:
        connection.execute(tables.bundles.update().values(manifest={"heads": heads}))
    sue = supervisor(store)
    given = [er(2, head="question"), er(0, seq=0, head="talk_type")]
    ratings.rate(store, sue.scope, sue.name, given)
    with pytest.raises(InvalidJudgement, match="0 to 2"):
        ratings.rate(store, sue.scope, sue.name, [er(3, head="question")])
    paired = rated_turns(store, BUNDLE, ["question", "talk_type"])
    assert [head.ordered for head in paired] == [False, False]
    assert all(turn.model in (0, 1, 2) for turns in paired.values() for turn in turns)


def test_rated_turns_have_one_value_per_supervisor_and_none_of_counsellors(store: Store) -> None:
    fill(store)
    sue, ben, noor = supervisor(store), supervisor(store, "ben"), counsellor(store)
    person(store, "ana", PersonRole.ANALYST)
    for who, value in ((noor, 0), (sue, 1), (ben, 2), (sue, 0)):
        ratings.rate(store, who.scope, who.name, [er(value)])
    [(head, [pair])] = rated_turns(store, BUNDLE, [ER]).items()
    assert head.name == ER
    assert sorted(pair.people) == [0, 2]
    level = next(
        row[ER]
        for row in rows(store, tables.turn_scores)
        if (row["session_id"], row["seq"], row["stage"]) == ("north-0", 1, "final")
    )
    assert pair.model == level


def comments(store: Store, person: Person) -> set[str | None]:
    return {one.comment for one in ratings.of_session(store, person, "north-0")}


def test_a_comment_is_redacted_encrypted_replaced_and_removed(store: Store) -> None:
    fill(store)
    sue, noor = supervisor(store), counsellor(store)
    given = [er(2), er(1, head=MECHANISMS[1])]

    def rate(comment: str | None) -> set[str | None]:
        ratings.rate(store, sue.scope, sue.name, given, comment=comment)
        assert comments(store, noor) == comments(store, sue)
        return comments(store, sue)

    [written] = rate("too early, call 020 7946 0018")
    assert written is not None
    assert written.startswith("too early")
    assert "7946" not in written
    [row] = stored_rows(store, tables.rating_comments)
    assert is_sealed(row["comment"])
    assert rate(None) == {written}
    assert rate("better") == {"better"}
    assert rate("") == {None}
    assert rows(store, tables.rating_comments) == []


def test_a_comment_is_of_its_place_and_goes_with_the_last_rating(store: Store) -> None:
    fill(store)
    sue, ben = supervisor(store), supervisor(store, "ben")
    first = ratings.rate(store, sue.scope, "sue", [er(2)], comment="the turn")
    second = ratings.rate(store, sue.scope, "sue", [er(1, head=MECHANISMS[1])])
    ratings.rate(store, sue.scope, "sue", [er(4, None, head="rating")], comment="all of it")
    ratings.rate(store, ben.scope, "ben", [er(0)])
    found = {(r.person, r.seq, r.comment) for r in ratings.of_session(store, sue, "north-0")}
    assert found == {("sue", 1, "the turn"), ("sue", None, "all of it"), ("ben", 1, None)}
    ratings.withdraw(store, "sue", first[0].rating_id)
    assert len(rows(store, tables.rating_comments)) == 2
    ratings.withdraw(store, "sue", second[0].rating_id)
    assert [row["seq"] for row in rows(store, tables.rating_comments)] == [None]


def test_erasing_the_session_erases_its_comments(store: Store) -> None:
    fill(store)
    sue = supervisor(store)
    ratings.rate(store, sue.scope, "sue", [er(2)], comment="a comment")
    erased = erasure.erase(store, ["north-0"], datetime.now(UTC))
    assert erased.removed["rating_comments"] == 1
    assert rows(store, tables.rating_comments) == []
