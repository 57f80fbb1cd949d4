"""`rapport reviews ask`: off by default; `--try` compares with people's reviews before adoption."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stream_app.core.rules.scorecards import parse
from stream_app.store.database import tables
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from stream_app.store.work import reviews
from stream_app.store.work.reviews import NewReview
from tests.asking.chat_stub import ChatStub, chat_stub, said
from tests.asking.permission import AGREED, QUOTE, permit
from tests.commands.conftest import NewStore, Rapport
from tests.store import batches, judging
from tests.store.reading import rows

CARDS = """
version: 1
scorecards:
  - name: plain
    title: In plain words
    criteria:
      - name: end
        question: Was there a good end?
        scale: ["no", "yes"]
        asked: true
"""
SAID = '{"quote": "%s", "answer": "%s"}'


@pytest.fixture
def stub() -> Iterator[ChatStub]:
    with chat_stub() as served:
        yield served


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    file = tmp_path / "cards.yaml"
    file.write_text(CARDS)
    return file


def reviewed(store: Store, session_id: str, value: int) -> None:
    """Sue answers the question in a review, which she signs off."""
    card = parse(CARDS.replace("asked: true", "weight: 2").encode(), "f")["plain"]
    [made] = reviews.assign(store, [NewReview(session_id, "sue", "sue", card, datetime.now(UTC))])
    reviews.sign_off(store, reviews.one(store, ALL_SESSIONS, made), {"end": value}, {})


def test_without_the_setting_nothing_is_sent(
    new_store: NewStore, rapport: Rapport, cards: Path
) -> None:
    permit(new_store(1), "north-0")
    for arguments in (
        ["reviews", "ask"],
        ["reviews", "ask", "--once"],
        ["reviews", "ask", "--try"],
    ):
        done = rapport(*arguments, RAPPORT_SCORECARDS=str(cards))
        assert done.returncode == 1
        assert "no text is sent to a language model: RAPPORT_ASK_ENDPOINT" in done.stderr


def test_without_an_asked_question_there_is_nothing_to_ask(
    new_store: NewStore, rapport: Rapport, stub: ChatStub
) -> None:
    permit(new_store(1), "north-0")
    done = rapport("reviews", "ask", "--once", RAPPORT_ASK_ENDPOINT=stub.url, RAPPORT_ASK_MODEL="m")
    assert "no question has `asked: true`" in done.stderr
    assert stub.bodies == []


def test_once_asks_about_sessions_that_have_just_ended(
    new_store: NewStore, rapport: Rapport, stub: ChatStub, cards: Path
) -> None:
    store = new_store(1)
    permit(store, "north-0")
    now = datetime.now(UTC) - timedelta(minutes=9)
    times = [(now + timedelta(minutes=n)).isoformat() for n in range(4)]
    turns = [batches.turn(n, session_id="new", occurred_at=times[n]) for n in range(2)]
    agreed = batches.consent(session_id="new", **{**AGREED, "occurred_at": times[2]})
    ended = batches.end(session_id="new", occurred_at=times[3])
    store.commit(batches.process([*turns, agreed, ended]))
    stub.answers(said(SAID % (QUOTE, "yes")))
    key = cards.with_name("key")
    key.write_text("s3cret\n")
    done = rapport(
        *("reviews", "ask", "--once"),
        RAPPORT_SCORECARDS=str(cards),
        RAPPORT_ASK_ENDPOINT=stub.url,
        RAPPORT_ASK_MODEL="m",
        RAPPORT_ASK_KEY_FILE=str(key),
    )
    assert "proposed: 1" in done.stdout, done.stderr
    assert [row["session_id"] for row in rows(store, tables.proposals)] == ["new"]
    assert stub.headers[0]["authorization"] == "Bearer s3cret"


def test_a_trial_compares_with_reviews_and_stores_nothing(
    new_store: NewStore, rapport: Rapport, stub: ChatStub, cards: Path
) -> None:
    store = new_store(3)
    judging.supervisor(store)
    for number, value in enumerate((1, 0, 1)):
        reviewed(store, f"north-{number}", value)
    permit(store, "north-0")
    permit(store, "north-1")
    stub.answers(said("yes"), said(SAID % (QUOTE, "yes")))  # the newest review is the first
    done = rapport(
        *("reviews", "ask", "--try", "--scorecards", cards),
        RAPPORT_ASK_ENDPOINT=stub.url,
        RAPPORT_ASK_MODEL="m",
    )
    assert done.returncode == 0, done.stderr
    assert "asked about 2 of 3 reviewed sessions (with text and consent)" in done.stdout
    assert "dropped, not-json: 1" in done.stdout
    assert "agreed with 1 of 1 review; too few for κ (20)" in done.stdout
    assert rows(store, tables.proposals) == []
