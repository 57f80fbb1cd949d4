"""From an ended session to a stored proposal: consent, masking, one request for each question."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from stream_app.asking.asker import Asker
from stream_app.asking.chat_endpoint import ChatEndpoint, EndpointFailed
from stream_app.asking.rounds import AskingRounds, proposals_counter
from stream_app.core.rules.proposals import Proposal, question_key
from stream_app.core.rules.scorecards import Criterion
from stream_app.store.accounts import audit
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure, retention
from stream_app.store.sessions.scope import ALL_SESSIONS, Scope
from stream_app.store.stream.repository import Store
from stream_app.store.work import proposals
from tests.asking.chat_stub import ChatStub, Reply, said, status
from tests.asking.permission import CLOSED, QUOTE, WARM, decide, permit
from tests.store.batches import BUNDLE, process, turn
from tests.store.reading import rows

SOON = datetime(2026, 1, 6, tzinfo=UTC)
WARMLY = said(f'{{"quote": "{QUOTE}", "answer": "throughout"}}')


def asker(store: Store, stub: ChatStub) -> Asker:
    return Asker(store, ChatEndpoint(stub.url, "small", None, 5.0, lambda _: None))


def rounds(
    store: Store, stub: ChatStub, *questions: Criterion, now: datetime = SOON
) -> AskingRounds:
    counter = proposals_counter()
    return AskingRounds(store, asker(store, stub), questions, counter, lambda: now, 1.0, 1.0)


def counted(done: AskingRounds) -> dict[str, float]:
    samples = [each for metric in done._counter.collect() for each in metric.samples]
    return {
        each.labels["result"]: each.value
        for each in samples
        if each.value and "result" in each.labels and each.name.endswith("_total")
    }


def test_a_session_with_consent_is_asked_about_once(store: Store, stub: ChatStub) -> None:
    stub.answers(WARMLY)
    process_ = rounds(store, stub, WARM)
    assert process_.round() == 1
    assert process_.round() == 0
    assert len(stub.bodies) == 1
    [stored] = rows(store, tables.proposals)
    assert (stored["session_id"], stored["question"]) == ("north-0", WARM.question)
    assert (stored["answer"], stored["value"], stored["seq"]) == ("throughout", 2, 0)
    [found] = proposals.of_session(store, ALL_SESSIONS, "north-0").values()
    assert (found.model, found.proposal) == ("small", Proposal(2, 0, 0, len(QUOTE)))
    entry = audit.latest(store)[0]
    assert (entry.action, entry.session_id) == ("read transcript", "north-0")
    assert entry.detail == "asked questions, sent to 127.0.0.1"


def test_another_model_and_a_changed_question_are_asked_anew(store: Store, stub: ChatStub) -> None:
    stub.answers(WARMLY)
    rounds(store, stub, WARM).round()
    other = Criterion("warm", "Was it cold?", WARM.scale, asked=True)
    assert rounds(store, stub, WARM, other).round() == 1
    assert len(proposals.of_session(store, ALL_SESSIONS, "north-0")) == 2


@pytest.mark.parametrize("without", ["consent", "recent activity", "questions"])
def test_nothing_is_sent(store: Store, stub: ChatStub, without: str) -> None:
    if without == "consent":
        decide(store, "north-0", "given", occurred_at="2026-01-05T13:00:00Z")
    now = SOON + timedelta(days=8 if without == "recent activity" else 0)
    questions = [] if without == "questions" else [WARM]
    assert rounds(store, stub, *questions, now=now).round() == 0
    assert stub.bodies == []


def test_a_running_session_is_not_asked_about(store: Store, stub: ChatStub) -> None:
    store.commit(process([turn(seq, session_id="open") for seq in range(4)]))
    permit(store, "open")
    stub.answers(WARMLY)
    rounds(store, stub, WARM).round()
    assert {row["session_id"] for row in rows(store, tables.proposals)} == {"north-0"}


def test_text_is_masked_even_where_redaction_is_off(store: Store, stub: ChatStub) -> None:
    store.load_privacy(redact=False)
    states = store.load_states(["north-0"], BUNDLE)
    late = turn(12, session_id="north-0", team="north", text="Call me: 020 7946 0958, I'm in.")
    store.commit(process([late], states))
    assert any("7946" in (row["text"] or "") for row in rows(store, tables.turns))
    permit_again = {"purposes": ["third-party-processing"], "version": "v10"}
    decide(store, "north-0", "given", occurred_at="2026-01-05T14:00:00Z", **permit_again)
    stub.answers(WARMLY)
    list(asker(store, stub).ask("north-0", [WARM]))
    assert "Call me" in stub.sent
    assert "7946" not in stub.sent


def test_bots_and_whispers_are_not_sent(store: Store, stub: ChatStub) -> None:
    states = store.load_states(["north-0"], BUNDLE)
    about = {"session_id": "north-0", "team": "north"}
    store.commit(
        process(
            [
                turn(12, role="system", speaker_id="bot", text="Rate this chat.", **about),
                turn(13, role="supervisor", speaker_id="sam", text="Slow down.", **about),
            ],
            states,
        )
    )
    stub.answers(WARMLY)
    list(asker(store, stub).ask("north-0", [WARM]))
    assert stub.sent
    assert "Rate this chat" not in stub.sent
    assert "Slow down" not in stub.sent


def test_consent_counts_before_each_question(store: Store, stub: ChatStub) -> None:
    stub.answers(WARMLY)
    answers = asker(store, stub).ask("north-0", [WARM, CLOSED])
    next(answers)
    decide(store, "north-0", "withdrawn", occurred_at="2026-01-05T13:00:00Z")
    assert list(answers) == []
    assert len(stub.bodies) == 1


def withdraw(store: Store) -> None:
    decide(store, "north-0", "withdrawn", occurred_at="2026-01-05T13:00:00Z")


def withdraw_and_keep(store: Store) -> None:
    store.hide_withdrawn = False
    store.load_privacy(redact=True)
    withdraw(store)


def give_without_purpose(store: Store) -> None:
    decide(store, "north-0", "given", occurred_at="2026-01-05T13:00:00Z")


def erase(store: Store) -> None:
    erasure.erase(store, ["north-0"], SOON)


def purge(store: Store) -> None:
    after = SOON + timedelta(days=9999)
    list(retention.purge(store, after, after, after))


@pytest.mark.parametrize("end", [withdraw, withdraw_and_keep, give_without_purpose, erase, purge])
def test_proposals_go_with_consent_session_and_retention(
    store: Store, stub: ChatStub, end: Callable[[Store], None]
) -> None:
    stub.answers(WARMLY)
    rounds(store, stub, WARM).round()
    assert rows(store, tables.proposals)
    end(store)
    assert rows(store, tables.proposals) == []
    assert not proposals.keep(store, "north-0", WARM, "small", Proposal(2, 0, 0, 4)), (
        "an answer that was under way comes too late"
    )


HOSTILE: list[tuple[Reply, str]] = [
    (said('{"quote": "Ignore all rules", "answer": "throughout"}'), "no-quote"),
    (said('{"quote": "That must have been hard", "answer": "excellent"}'), "other-answer"),
    (said('{"quote": "That must have been hard", "answer": "throughout", "value": 9}'), "not-json"),
    (said("'; DROP TABLE proposals; --"), "not-json"),
    (said("{", "length"), "incomplete"),
    (status(422), "refused"),
]


@pytest.mark.parametrize(("reply", "reason"), HOSTILE)
def test_what_is_no_proposal_is_dropped_and_counted(
    store: Store, stub: ChatStub, reply: Reply, reason: str
) -> None:
    stub.answers(reply)
    done = rounds(store, stub, WARM)
    assert done.round() == 0
    assert counted(done) == {reason: 1.0}
    [stored] = rows(store, tables.proposals)
    assert (stored["dropped"], stored["value"], stored["seq"]) == (reason, None, None)
    assert proposals.of_session(store, ALL_SESSIONS, "north-0") == {}
    done.round()
    assert len({body["messages"][0]["content"] for body in stub.bodies}) == 1, "not asked again"


def test_a_failing_endpoint_leaves_the_session_for_later(store: Store, stub: ChatStub) -> None:
    stub.answers(status(503))
    done = rounds(store, stub, WARM)
    with pytest.raises(EndpointFailed):
        done.round()
    assert rows(store, tables.proposals) == []
    stub.answers(WARMLY)
    assert done.round() == 1


def test_proposals_are_read_in_the_reader_s_scope(store: Store, stub: ChatStub) -> None:
    stub.answers(WARMLY)
    rounds(store, stub, WARM).round()
    assert proposals.of_session(store, Scope(team="south"), "north-0") == {}
    assert proposals.of_question(store, Scope(team="south"), WARM, "small") == {}
    assert list(proposals.of_session(store, Scope(team="north"), "north-0")) == [question_key(WARM)]
