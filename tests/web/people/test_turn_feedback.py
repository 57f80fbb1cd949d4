"""Feedback turn by turn, with the counsellor's own words of earlier sessions."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from stream_app.contracts.scores import MECHANISMS
from stream_app.store.accounts import audit
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure
from stream_app.store.sessions import clearest_turns
from stream_app.store.sessions.clearest_turns import LOOK_BACK, SESSIONS, before_session
from stream_app.store.sessions.scope import Scope
from stream_app.store.stream.repository import Store
from stream_app.store.work import assignments
from tests.fakes import FakeScorer
from tests.store import batches
from tests.store.judging import NOOR
from tests.web.feedback.test_composition import FORM, heads
from tests.web.people.conftest import As
from tests.web.people.test_pages import noor, proper, recent

ER, IP, EX = MECHANISMS
NOW = datetime.now(UTC)
WORDS = "It hurts to read this."
CALLED = {head: {"no": 0.1, "yes": 0.9} for head in ("distress", "opportunity")}
CALM = {head: {"no": 0.9, "yes": 0.1} for head in ("distress", "opportunity")}


@pytest.fixture
def scored(filled: Store) -> Store:
    """The counsellor's turns of ``today`` lack all mechanisms; those of ``earlier`` have ER."""
    manifest = {"name": "fake", "empathy": msgspec.to_builtins(FakeScorer.empathy)}
    with filled.transaction() as connection:
        connection.execute(sa.update(tables.bundles).values(manifest=manifest))
    session(filled, "earlier", 3)
    session(filled, "today", 1)
    set_scores(filled, "earlier", {seq: {ER: 2} for seq in range(1, 12, 2)})
    set_scores(filled, "today", {})
    return filled


def session(store: Store, name: str, days: float, **changes: Any) -> None:
    """A closed session of Noor's with the same words in every turn."""
    recent(store, name, days, WORDS, **changes)


def set_scores(store: Store, name: str, levels: dict[int, dict[str, int]], **client: Any) -> None:
    """Give the counsellor's turns these levels (default 0), and the client's this distress."""
    score = tables.turn_scores
    with store.transaction() as connection:
        for seq in range(12):
            where = (score.c.session_id == name, score.c.seq == seq)
            if seq % 2 == 0:
                called = client.get(f"seq_{seq}", CALLED)
                connection.execute(sa.update(score).where(*where).values(client=called))
                continue
            given = {head: levels.get(seq, {}).get(head, 0) for head in MECHANISMS}
            expressed = {
                head: {
                    "level": level,
                    "probabilities": [0.9 if n == level else 0.05 for n in range(3)],
                    "rationale": [[0, 8]] if level else [],
                }
                for head, level in given.items()
            }
            answers = any(given.values())
            expressed |= heads(opened=0.9) if answers else FORM
            values = {**given, "expressed": expressed, "abstained": []}
            connection.execute(sa.update(score).where(*where).values(**values))


def by_turn(page: str) -> dict[int, str]:
    """The words of each turn's feedback."""
    found = re.findall(r'<li class="panel" id="feedback-(\d+)">(.*?)</li>', page, re.DOTALL)
    return {
        int(seq): " ".join(re.sub(r"<[^>]+>", " ", part).split()).replace(" ,", ",")
        for seq, part in found
    }


def test_each_turn_shows_its_words_and_what_its_answer_lacks(scored: Store, as_: As) -> None:
    set_scores(scored, "today", {1: {ER: 2, EX: 1}}, seq_4=CALM)
    page = proper(as_("noor").get("/sessions/today/feedback"))
    turns = by_turn(page)
    assert list(turns) == [1, 3, 5, 7, 9, 11]
    assert "Expressed: ER emotional reactions, EX explorations" in turns[1]
    assert '<mark class="er"><mark class="ex">It hurts</mark></mark> to read this.' in page
    assert "It answers turn 0, an opportunity" in turns[1]
    assert "Turn 2 was an opportunity" in turns[3]
    assert "does not have" not in turns[1], "an answer need not have all three"
    assert "It could not judge" not in turns[1]
    assert "not sure enough" in turns[5]
    assert "opportunity" not in turns[5], "turn 4 was calm"
    assert all(f"{badge} " in turns[3] for badge in ("ER", "IP", "EX"))


def test_own_words_of_earlier_sessions_come_with_their_day_and_link(scored: Store, as_: As) -> None:
    page = proper(as_("noor").get("/sessions/today/feedback"))
    day = (datetime.now(UTC) - timedelta(days=3)).strftime("%A")
    said = by_turn(page)[3]
    assert re.search(rf"It hurts You did this on {day}, turn \d+ of earlier", said)
    assert re.search(r'href="/sessions/earlier\?page=0#turn-\d+"', page)
    assert said.count("You did this") == 2, "both ways of ER; there are none of IP and EX"
    read = [e for e in audit.latest(scored) if e.session_id == "earlier"]
    assert [(e.person, e.action, e.detail) for e in read] == [
        ("noor", "read transcript", "own words for feedback")
    ]


@pytest.mark.parametrize("name", ["sue", "pat"])
def test_supervisors_see_what_is_missing_but_no_words_of_other_sessions(
    scored: Store, as_: As, name: str
) -> None:
    page = proper(as_(name).get("/sessions/today/feedback"))
    assert "Turn 2 was an opportunity" in by_turn(page)[3]
    assert "You did this" not in page
    assert "Rewrite this turn" not in page
    assert "earlier" not in {e.session_id for e in audit.latest(scored)}


def test_a_link_leads_to_practice(scored: Store, as_: As) -> None:
    page = proper(as_("noor").get("/sessions/today/feedback"))
    assert page.count("Rewrite this turn") == 6
    assert as_("noor").get("/sessions/today/turns/3/practice").status_code == 200
    assert 'href="/sessions/today/turns/3/practice"' in page


def clear(store: Store, **changes: Any) -> list[str]:
    """The sessions with clear turns of Noor's."""
    given = {"scope": Scope(speaker=noor(store)), "speaker": noor(store), "began": NOW} | changes
    found = before_session(store, mechanism=ER, **given)
    return list(dict.fromkeys(turn.session_id for turn in found))


def ignored(store: Store, name: str) -> None:
    set_scores(store, name, {seq: {ER: 2} for seq in range(1, 12, 2)})


def test_words_are_those_of_earlier_ended_own_sessions(scored: Store) -> None:
    before = clear(scored)
    session(scored, "later", 0.5)
    ignored(scored, "later")
    assert "earlier" in before
    assert "later" in clear(scored)
    [began] = started(scored, "today")
    assert "later" not in clear(scored, began=began)
    session(scored, "old", LOOK_BACK.days + 2)
    ignored(scored, "old")
    assert "old" not in clear(scored)
    olu = scored.privacy.pseudonym("olu@example.org")
    assert clear(scored, speaker=olu) == [], "not of others, whatever the scope"
    assert clear(scored, speaker=olu, scope=Scope(speaker=olu)) != ["earlier"]


def started(store: Store, name: str) -> list[datetime]:
    with store.reading() as connection:
        table = tables.session_scores
        query = sa.select(table.c.started_at).where(table.c.session_id == name)
        return list(connection.scalars(query))


def test_an_assigned_session_of_a_colleague_gives_no_words(scored: Store) -> None:
    assignments.assign(scored, "south-0", noor(scored), "pat")
    assert "south-0" not in clear(scored)


def test_erased_hidden_and_expired_text_is_not_found(scored: Store) -> None:
    for name in ("withdrawn", "expired", "erased"):
        session(scored, name, 2)
        ignored(scored, name)
    assert {"withdrawn", "expired", "erased"} <= set(clear(scored))
    record = batches.consent("withdrawn", session_id="withdrawn", version="2")
    states = scored.load_states(["withdrawn"], batches.BUNDLE)
    scored.commit(batches.process([record], states))
    with scored.transaction() as connection:
        where = tables.turns.c.session_id == "expired"
        connection.execute(sa.update(tables.turns).where(where).values(text=None))
    erasure.erase(scored, ["erased"], datetime.now(UTC), [])
    assert not {"withdrawn", "expired", "erased"} & set(clear(scored))


def test_abstained_and_late_turns_are_not_found(scored: Store) -> None:
    score = tables.turn_scores
    with scored.transaction() as connection:
        own = score.c.session_id == "earlier"
        first = own & score.c.seq.in_([1, 3])
        connection.execute(sa.update(score).where(own).values(abstained=[ER]))
        connection.execute(sa.update(score).where(first).values(abstained=[], late=True))
    assert "earlier" not in clear(scored)


def test_only_the_newest_sessions_and_their_clearest_turns_are_read(
    scored: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clearest_turns, "SESSIONS", 2)
    monkeypatch.setattr(clearest_turns, "TURNS", 3)
    session(scored, "newest", 0.2)
    set_scores(scored, "newest", {1: {ER: 1}, 3: {ER: 2}})
    found = before_session(scored, Scope(speaker=noor(scored)), noor(scored), ER, NOW)
    assert [(turn.session_id, turn.seq) for turn in found] == [("newest", 3), ("newest", 1)]
    assert SESSIONS <= 50


def test_the_query_begins_with_the_counsellors_own_sessions(scored: Store) -> None:
    """No scan of sessions, turns or scores, however many there are."""
    statements = []

    def remember(*call: Any) -> None:
        statements.append((call[2], call[3]))

    sa.event.listen(scored.engine, "before_cursor_execute", remember)
    try:
        before_session(scored, Scope(speaker=noor(scored)), noor(scored), ER, NOW)
    finally:
        sa.event.remove(scored.engine, "before_cursor_execute", remember)
    [(statement, given)] = [each for each in statements if "turn_scores" in each[0]]
    with scored.engine.connect() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given)
        steps = [row[-1] for row in plan]
    read = [step for step in steps if step.startswith(("SCAN", "SEARCH"))]
    names = "session_speakers|session_scores|turn_scores|turns"
    assert not [step for step in read if re.match(rf"SCAN ({names})\b", step)], steps
    first = next(step for step in read if re.search(r"(session_speakers|session_scores)\b", step))
    assert "session_speakers" in first, steps
    assert "speaker=?" in first, steps


def test_long_sessions_have_pages(scored: Store, as_: As) -> None:
    log = [
        batches.turn(seq, session_id="long", team="north", speaker_id=NOOR if seq % 2 else "c")
        for seq in range(210)
    ]
    scored.commit(batches.process([*log, batches.end(session_id="long")]))
    first = proper(as_("noor").get("/sessions/long/feedback"))
    second = proper(as_("noor").get("/sessions/long/feedback?page=1"))
    assert set(by_turn(first)) == set(range(1, 200, 2))
    assert set(by_turn(second)) == {201, 203, 205, 207, 209}
    assert "turns 200–399" in first
    assert by_turn(proper(as_("noor").get("/sessions/long/feedback?page=2"))) == {}


def test_a_turn_after_withheld_ones_is_no_answer(scored: Store, as_: As) -> None:
    """
    ::

        client      c0       c3
        counsellor     ?  k2     k4
    """
    consents = {0: True, 1: False}
    log = [
        batches.turn(
            seq,
            session_id="gap",
            team="north",
            speaker_id="c" if seq in (0, 3) else NOOR,
            role="client" if seq in (0, 3) else "counsellor",
            consent=consents.get(seq),
            consent_version="1",
        )
        for seq in range(5)
    ]
    again = batches.consent(session_id="gap", version="2", occurred_at="2026-01-05T10:01:30Z")
    log.insert(2, again)
    scored.commit(batches.process([*log, batches.end(session_id="gap")]))
    with scored.transaction() as connection:
        here = tables.turn_scores.c.session_id == "gap"
        connection.execute(sa.update(tables.turn_scores).where(here).values(client=CALLED))
    turns = by_turn(proper(as_("noor").get("/sessions/gap/feedback")))
    assert list(turns) == [2, 4]
    assert "opportunity" not in turns[2]
    assert "opportunity" in turns[4]


def test_without_the_bundles_references_nothing_is_called_missing(filled: Store, as_: As) -> None:
    page = proper(as_("noor").get("/sessions/north-0/feedback"))
    assert len(by_turn(page)) == 6
    assert "was an opportunity" not in page
