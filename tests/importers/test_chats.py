"""Messages of chats and help desks, in the form of their services' documentation."""

import copy
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from stream_app.client import NewTurn
from stream_app.client.requests import encode
from stream_app.contracts.events import TurnDelete, TurnEdit
from stream_app.importers import chats, intercom, matrix, slack, twilio, written, zendesk
from stream_app.importers.imported import ImportRefused, Item, People, Skipped

ROOM, ANA, BEN, BOT = "!r:example.org", "@ana:example.org", "@ben:example.org", "@bot:example.org"
PEOPLE = People({BEN, "UBEN", "ben"}, {BOT, "UBOT"})


def short(items: Iterable[Item]) -> list[Any]:
    """Role and text of turns, `end`, and the reason of what is left out."""
    found: list[Any] = []
    for item in items:
        if isinstance(item, Skipped):
            found.append(item.reason)
        elif isinstance(item, NewTurn):
            encode(item)
            found.append((item.role.value, item.text))
        else:
            found.append("end")
    return found


def in_room(*events: Any) -> list[Any]:
    return short(item for _, item in matrix.events_of(ROOM, events, "@me:example.org", PEOPLE))


def message(body: Any = "Hello.", sender: str = ANA, **content: Any) -> dict[str, Any]:
    return {
        "type": "m.room.message",
        "event_id": "$143273582443PhrSn:example.org",
        "sender": sender,
        "origin_server_ts": 1432735824653,
        "unsigned": {"age": 1234},
        "content": {"msgtype": "m.text", "body": body, **content},
    }


def test_words_of_a_room_are_turns() -> None:
    assert in_room(message(), message("Hi.", BEN), message("cries", msgtype="m.emote")) == [
        *(("client", "Hello."), ("counsellor", "Hi."), ("client", "cries"))
    ]
    image = {"msgtype": "m.image", "filename": "a.jpg"}
    assert in_room(message("my dog", **image)) == [("client", "my dog")]
    [turn] = [item for _, item in matrix.events_of(ROOM, [message()], "@me", PEOPLE)]
    assert isinstance(turn, NewTurn)
    assert (turn.session_id, turn.turn_id) == (ROOM, "$143273582443PhrSn:example.org")
    assert turn.occurred_at.isoformat() == "2015-05-27T14:10:24.653000+00:00"


def test_a_replys_fallback_is_the_other_persons() -> None:
    relation = {"m.relates_to": {"m.in_reply_to": {"event_id": "$1"}}}
    fallback = f"> <{ANA}> I cannot sleep.\n> At all.\n\nSince when?\n> 3 hours?"
    assert in_room(message(fallback, BEN, **relation)) == [
        ("counsellor", "Since when?\n> 3 hours?")
    ]
    assert in_room(message("Since when?", BEN, **relation)) == [("counsellor", "Since when?")]
    assert in_room(message("> 3 hours?", BEN)) == [("counsellor", "> 3 hours?")]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (message("* Hi", **{"m.relates_to": {"rel_type": "m.replace", "event_id": "$1"}}), "text"),
        ({**message(), "type": "m.room.redaction", "content": {}}, "message"),
        ({**message(), "content": {}, "unsigned": {"redacted_because": {}}}, "deleted"),
        ({**message(), "type": "m.room.encrypted", "content": {"ciphertext": "x"}}, "encrypted"),
        (message("a.jpg", msgtype="m.image"), "attachment"),
        (message("a.jpg", msgtype="m.file", filename="a.jpg"), "attachment"),
        (message(" "), "no words"),
        (message(sender=BOT), "neither"),
        (message(None), "text"),
        (message(7), "text"),
        (message(**{"m.relates_to": "x"}), "relation"),
        ({**message(), "content": "x"}, "content"),
        ({**message(), "sender": 3}, "sender"),
        ({**message(), "origin_server_ts": "soon"}, "time"),
        ({**message(), "origin_server_ts": 1e30}, "time"),
        ({**message(), "origin_server_ts": True}, "time"),
        ({"event_id": "$1"}, "not as its service"),
        ("oops", "not as its service"),
        (None, "not as its service"),
        ({**message(), "event_id": None}, "id"),
    ],
)
def test_an_odd_message_is_left_out_and_the_next_one_is_read(event: Any, reason: str) -> None:
    [odd, other] = in_room(event, message("Hi.", BEN))
    assert reason in odd
    assert other == ("counsellor", "Hi.")


def test_a_relation_of_null_is_none_and_threads_are_words() -> None:
    thread = {"rel_type": "m.thread", "m.in_reply_to": {"event_id": "$1"}, "is_falling_back": True}
    for relation in (None, {}, thread):
        assert in_room(message(**{"m.relates_to": relation})) == [("client", "Hello.")]


def test_long_ids_are_shortened_and_halves_of_characters_replaced() -> None:
    events = [{**message("a\ud83d\x00"), "event_id": f"${'x' * 300}{n}"} for n in range(2)]
    found = list(matrix.events_of("!" + "r" * 300, events, "", PEOPLE))
    turns = [item for _, item in found if isinstance(item, NewTurn)]
    assert [turn.text for turn in turns] == ["a\ufffd\ufffd"] * 2
    assert len({turn.turn_id for turn in turns}) == len({key for key, _ in found}) == 2
    assert {len(turn.session_id) for turn in turns} == {200}
    assert all(key.isascii() and len(key) <= 190 for key, _ in found)


def test_a_session_ends_when_a_client_leaves() -> None:
    def left(who: str) -> dict[str, Any]:
        content = {"membership": "leave"}
        return {**message(), "type": "m.room.member", "state_key": who, "content": content}

    assert in_room(left(ANA), left(BEN), left(BOT)) == ["end"]


def part(kind: str = "comment", body: Any = "<p>Hello.</p>", **more: Any) -> dict[str, Any]:
    return {
        "type": "conversation_part",
        "id": "4412",
        "part_type": kind,
        "body": body,
        "created_at": 1400857494,
        "updated_at": 1400857494,
        "notified_at": 1400857587,
        "assigned_to": None,
        "author": {"type": "user", "id": "536e564f316c83104c000020", "name": "Ana"},
        "attachments": [],
        "external_id": None,
        "redacted": False,
        **more,
    }


def notification(topic: str, *parts: Any, **item: Any) -> dict[str, Any]:
    return {
        "type": "notification_event",
        "app_id": "aa11aa",
        "id": "notif_ccd8a4d0",
        "topic": topic,
        "created_at": 1400857500,
        "data": {
            "type": "notification_event_data",
            "item": {
                "type": "conversation",
                "id": "147",
                "created_at": 1400850973,
                "source": {
                    "type": "conversation",
                    "id": "403918330",
                    "body": "<p>I <b>lost</b> it.</p>",
                    "author": {
                        "type": "contact",
                        "id": "53",
                        "name": "Ana",
                        "email": "a@b.example",
                    },
                    "attachments": [],
                    "redacted": False,
                },
                "conversation_parts": {
                    "type": "conversation_part.list",
                    "conversation_parts": list(parts),
                    "total_count": len(parts),
                },
                **item,
            },
        },
    }


ADMIN = {"type": "admin", "id": "25", "name": "Ben", "email": "b@b.example"}


def replied(*parts: Any, topic: str = "conversation.user.replied", **item: Any) -> list[Any]:
    return short(intercom.events_of(notification(topic, *parts, **item)))


def test_intercoms_messages_are_turns() -> None:
    assert replied(topic="conversation.user.created") == [("client", "I lost it.")]
    assert replied(part(), part(body="<p>So sorry.</p>", author=ADMIN)) == [
        *(("client", "Hello."), ("counsellor", "So sorry."))
    ]
    closed = part("close", "<p>Bye.</p>", author=ADMIN)
    topic = "conversation.admin.closed"
    assert replied(closed, part("close", None), topic=topic) == [("counsellor", "Bye."), "end"]
    [turn] = intercom.events_of(notification("conversation.user.replied", part()), True)
    assert isinstance(turn, NewTurn)
    assert (turn.session_id, turn.turn_id, turn.consent) == ("intercom-147", "intercom-4412", True)


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (part("note"), "internal note"),
        (part("assignment"), "internal note"),
        (part("away_mode_assignment"), "no message"),
        (part(redacted=True), "deleted"),
        (part(author={"type": "robot", "id": "1"}), "neither"),
        (part(author=None), "neither"),
        (part(author="x"), "author"),
        (part(author={"type": "user"}), "not as its service"),
        (part(body="<img src='x.jpg' alt='photo'>"), "no words"),
        (part(body=None), "no words"),
        (part(created_at="soon"), "time"),
        (part(created_at=None), "time"),
        ("oops", "not as its service"),
    ],
)
def test_notes_and_odd_parts_of_intercom_are_left_out(odd: Any, reason: str) -> None:
    left_out, other = replied(odd, part())
    assert reason in left_out
    assert other == ("client", "Hello.")


@pytest.mark.parametrize(
    "author", [{"type": "bot", "id": "1"}, {**ADMIN, "from_ai_agent": True}, ADMIN]
)
def test_a_bot_of_intercom_has_the_role_system(author: dict[str, Any]) -> None:
    assert replied(part(author=author), topic="conversation.operator.replied") == [
        ("system", "Hello.")
    ]


@pytest.mark.parametrize(
    "event", [{"subtype": "bot_message", "bot_id": "B1", "user": None}, {"bot_id": "B1"}]
)
def test_a_bot_of_slack_has_the_role_system(event: dict[str, Any]) -> None:
    [(role, _)] = in_slack(**event)
    assert role == "system"


def test_programs_of_other_services_have_the_role_system() -> None:
    assert in_room(message(msgtype="m.notice")) == [("system", "Hello.")]
    queue = short(twilio.events_of({**HOOK, "Author": "system"}, PEOPLE))
    assert queue == [("system", "Ahoy!")]
    event = copy.deepcopy(ADDED)
    event["event"]["comment"]["author"]["id"] = "-1"
    assert [role for role, _ in short(zendesk.events_of(event))] == ["system"]


def test_an_account_of_a_bot_may_be_named() -> None:
    people = structs.replace(PEOPLE, bots={ANA})
    [(_, item)] = matrix.events_of(ROOM, [message()], "@me", people)
    assert short([item]) == [("system", "Hello.")]


def test_other_notifications_of_intercom_are_left_out() -> None:
    assert "does not name" in replied(part(), part(), topic="conversation_part.redacted")[0]
    assert "erase" in replied(topic="conversation.deleted")[0]
    assert "missing" in replied(topic="conversation.admin.single.created", source=None)[0]
    for odd in (None, [], {"topic": "x"}, {"topic": "x", "data": {"item": 1}}):
        assert "documents" in short(intercom.events_of(odd))[0]


TRIGGER = {
    "ticket": "35436",
    "status": "Open",
    "author": "20978392",
    "agent": "false",
    "text": "It is lost.",
    "at": "2026-03-02T09:15:00+01:00",
}
ADDED = {
    "account_id": 22129848,
    "detail": {
        "actor_id": "8447388090494",
        "assignee_id": "8447388090494",
        "brand_id": "8447346621310",
        "created_at": "2025-01-08T10:12:07Z",
        "description": "test",
        "form_id": "8646151517822",
        "id": "5158",
        "is_public": True,
        "priority": "LOW",
        "requester_id": "8447388090494",
        "status": "OPEN",
        "subject": "Parcel",
        "tags": [],
        "type": "TASK",
        "updated_at": "2025-01-08T10:12:07Z",
        "via": {"channel": "web_service"},
    },
    "event": {
        "comment": {
            "author": {"id": "8447388090494", "is_staff": True, "name": "Ben"},
            "body": "I am sorry.",
            "id": "19006370042366",
            "is_public": True,
        },
        "meta": {"sequence": {"id": "01JH", "position": 1, "total": 1}},
    },
    "id": "2b24ef10-19c3-11ef-b5a5-8129e8ecf2ff",
    "subject": "zen:ticket:5158",
    "time": "2025-01-08T10:12:08.123456Z",
    "type": "zen:event-type:ticket.comment_added",
    "zendesk_event_version": "2022-11-06",
}


def added(**comment: Any) -> dict[str, Any]:
    inner = {**ADDED["event"]["comment"], **comment}  # type: ignore[index]
    return {**ADDED, "event": {"comment": inner}}


def test_zendesks_comments_are_turns() -> None:
    assert short(zendesk.events_of(TRIGGER)) == [("client", "It is lost.")]
    for agent in ("true", "True", True):
        answer = {**TRIGGER, "agent": agent, "status": "Solved"}
        assert short(zendesk.events_of(answer)) == [("counsellor", "It is lost."), "end"]
    assert short(zendesk.events_of(ADDED)) == [("counsellor", "I am sorry.")]
    [turn] = zendesk.events_of(ADDED)
    assert isinstance(turn, NewTurn)
    assert (turn.session_id, turn.turn_id) == ("zendesk-5158", "zendesk-19006370042366")
    changed = {**ADDED, "type": "zen:event-type:ticket.status_changed"}
    ended = {**changed, "event": {"current": "SOLVED", "previous": "OPEN"}}
    assert short(zendesk.events_of(ended)) == ["end"]
    assert short(zendesk.events_of({**ended, "event": {"current": "PENDING"}})) == []


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (added(is_public=False), "internal note"),
        (added(body=""), "text"),
        (added(author={"id": "1"}), "not as its service"),
        ({**ADDED, "type": "zen:event-type:ticket.comment_redacted"}, "no comment"),
        ({**ADDED, "time": "soon"}, "time"),
        ({**ADDED, "detail": None}, "not as its service"),
        ({**TRIGGER, "agent": "maybe"}, "agent"),
        ({**TRIGGER, "agent": None}, "agent"),
        ({**TRIGGER, "at": "2026-03-02T09:15:00"}, "offset"),
        ({**TRIGGER, "at": None}, "time"),
        ({**TRIGGER, "text": None}, "text"),
        ({**TRIGGER, "text": 7}, "text"),
        ({"ticket": 1}, "not as its service"),
        ([], "documents"),
    ],
)
def test_odd_webhooks_of_zendesk_are_left_out(payload: Any, reason: str) -> None:
    [left_out] = short(zendesk.events_of(payload))
    assert reason in left_out


@pytest.mark.parametrize(
    "text",
    [
        "It is lost.\n\nOn Mon, 2 Mar 2026 at 09:00, Support <s@x.example> wrote:\n> So sorry.",
        "It is lost.\r\n\r\n-- \r\nC. Lane\r\n07700 900123",
        "It is lost.\n\n________________________________\nFrom: S <s@x.example>\nSent: Monday\n"
        "To: C\nSubject: Parcel\n\nSo sorry.",
        "> So sorry.\nIt is lost.",
        "It is lost.\n\nSent from my iPhone",
        "-" * 46 + "\n\nCleo Lane, Mar 2, 2026, 10:00\n\nIt is lost.",
        "<blockquote>So sorry.</blockquote><p>It is&nbsp;lost.</p>",
        "<style>p{}</style><p>It is lost.</p><script>x</script>",
    ],
)
def test_what_a_mail_quotes_is_not_its_writers(text: str) -> None:
    assert short(zendesk.events_of({**TRIGGER, "text": text})) == [("client", "It is lost.")]


def test_closing_words_of_a_mail_are_its_writers() -> None:
    text = "Thanks for trying.\nThank you, I want to die."
    assert written.of_mail(text) == text
    assert written.of_html("1 < 2 &amp; <i>so</i> on<br>x") == "1 < 2 & so on\nx"


SLACK = {
    "token": "XXYYZZ",
    "team_id": "T123ABC456",
    "api_app_id": "A123ABC456",
    "event": {
        "type": "message",
        "channel": "C123ABC456",
        "user": "UANA",
        "text": "Hello &amp; <@UBEN|ben>",
        "ts": "1355517523.000005",
        "event_ts": "1355517523.000005",
        "channel_type": "channel",
    },
    "type": "event_callback",
    "authorizations": [{"team_id": "T123ABC456", "user_id": "UBOT", "is_bot": False}],
    "event_id": "Ev123ABC456",
    "event_time": 1355517523,
}


def in_slack(**event: Any) -> list[Any]:
    inner = {**SLACK["event"], **event}  # type: ignore[dict-item]
    return short(slack.events_of({**SLACK, "event": inner}, PEOPLE))


def test_slacks_messages_are_turns() -> None:
    assert in_slack() == [("client", "Hello & @ben")]
    assert in_slack(user="UBEN", subtype="file_share", files=[{}]) == [
        ("counsellor", "Hello & @ben")
    ]
    assert in_slack(type="reaction_added") == []
    [turn] = slack.events_of(SLACK, PEOPLE)
    assert isinstance(turn, NewTurn)
    assert turn.session_id == "slack-T123ABC456-C123ABC456"
    assert turn.occurred_at.isoformat() == "2012-12-14T20:38:43.000005+00:00"


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"subtype": "message_changed", "message": {"text": "Hi", "edited": {}}}, "message"),
        (
            {
                "subtype": "message_changed",
                "message": {"text": "Hi", "ts": "1358878749.000002"},
                "previous_message": {"text": "Hi"},
            },
            "no words",
        ),
        ({"subtype": "message_deleted"}, "message"),
        ({"subtype": "channel_join"}, "notice"),
        ({"user": "UBOT"}, "neither"),
        ({"text": ""}, "no words"),
        ({"text": None, "files": [{}]}, "no words"),
        ({"user": None}, "user"),
        ({"ts": "soon"}, "time"),
        ({"ts": 7}, "time"),
        ({"channel": None}, "channel"),
    ],
)
def test_odd_messages_of_slack_are_left_out(event: dict[str, Any], reason: str) -> None:
    [left_out] = in_slack(**event)
    assert reason in left_out


HOOK = {
    "EventType": "onMessageAdded",
    "AccountSid": "AC00",
    "ConversationSid": "CH01",
    "MessageSid": "IM02",
    "Index": "10",
    "DateCreated": "2025-01-01T00:00:00.000Z",
    "Body": "Ahoy!",
    "Author": "+15017122661",
    "ParticipantSid": "MB03",
    "Attributes": "{}",
    "Source": "SMS",
}
STREAM = {
    "specversion": "1.0",
    "type": "com.twilio.conversations.message.added",
    "source": "AB01",
    "id": "NO01",
    "dataschema": "https://events-schemas.twilio.com/Conversations.MessageAdded/2",
    "data": {
        "Author": "ben",
        "ParticipantSid": "MB03",
        "ConversationSid": "CH01",
        "MessageSid": "IM02",
        "Index": 10,
        "MessageBody": "Ahoy!",
        "DateCreated": "2025-01-01T00:00:00.000Z",
        "Media": [],
    },
}
RESOURCE = {
    "sid": "IM02",
    "account_sid": "AC00",
    "conversation_sid": "CH01",
    "body": "Ahoy!",
    "media": None,
    "author": "message author",
    "participant_sid": None,
    "attributes": "{}",
    "date_created": "2020-07-01T22:18:37Z",
    "date_updated": "2020-07-01T22:18:37Z",
    "index": 0,
}


def test_twilios_messages_are_turns() -> None:
    assert short(twilio.events_of(HOOK, PEOPLE)) == [("client", "Ahoy!")]
    assert short(twilio.events_of(STREAM, PEOPLE)) == [("counsellor", "Ahoy!")]
    assert short(twilio.of_message(RESOURCE, PEOPLE)) == [("client", "Ahoy!")]
    state = {"StateTo": "closed", "StateUpdated": "2025-01-01T00:00:00.000Z"}
    for kind in (
        "onConversationStateUpdated",
        "com.twilio.conversations.conversation-state.updated",
    ):
        fields = {"ConversationSid": "CH01", **state}
        hook = (
            {"EventType": kind, **fields}
            if kind.startswith("on")
            else {"type": kind, "data": fields}
        )
        assert short(twilio.events_of(hook, PEOPLE)) == ["end"]
    assert short(twilio.events_of({"EventType": "onParticipantAdded"}, PEOPLE)) == []


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({**HOOK, "EventType": "onMessageUpdated", "Body": None}, "text"),
        ({**HOOK, "EventType": "onMessageRemoved", "MessageSid": ""}, "id"),
        ({**HOOK, "Body": "", "Media": "[]"}, "no words"),
        ({**HOOK, "Body": 7}, "text"),
        ({**HOOK, "DateCreated": None}, "time"),
        ({**HOOK, "ConversationSid": None}, "conversation"),
        ({**STREAM, "data": None}, "not as its service"),
        ([], "documents"),
    ],
)
def test_odd_messages_of_twilio_are_left_out(payload: Any, reason: str) -> None:
    [left_out] = short(twilio.events_of(payload, PEOPLE))
    assert reason in left_out


def test_files_of_every_service_are_read_in_order(tmp_path: Path) -> None:
    later = {**RESOURCE, "sid": "IM03", "body": "Later.", "date_created": "2020-07-02T00:00:00Z"}
    files: dict[chats.Service, Any] = {
        "twilio": {"meta": {}, "messages": [later, RESOURCE]},
        "slack": [{**SLACK["event"], "channel": None}, SLACK],  # type: ignore[dict-item]
        "matrix": {"chunk": [message(), message(**{"m.relates_to": 1})]},
        "intercom": notification("x", part())["data"]["item"],
        "zendesk": TRIGGER,
    }
    found = {}
    for service, content in files.items():
        file = tmp_path / f"{service}.json"
        file.write_text(json.dumps(content))
        items = chats.read(file, service, PEOPLE, "room")
        found[service] = (short(items), {i.session_id for i in items if isinstance(i, NewTurn)})
    assert found == {
        "twilio": ([("client", "Ahoy!"), ("client", "Later.")], {"twilio-CH01"}),
        "slack": (
            [("client", "Hello & @ben")] * 2,
            {"slack-slack-room", "slack-T123ABC456-C123ABC456"},
        ),
        "matrix": (["its relation is no object", ("client", "Hello.")], {"room"}),
        "intercom": ([("client", "I lost it."), ("client", "Hello.")], {"intercom-147"}),
        "zendesk": ([("client", "It is lost.")], {"zendesk-35436"}),
    }


def test_files_may_be_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(f"{json.dumps(TRIGGER)}\n\n{json.dumps(ADDED)}\n")
    assert len(chats.read(file, "zendesk", PEOPLE)) == 2
    file.write_text(f"{json.dumps(TRIGGER)}\noops\n")
    with pytest.raises(ImportRefused, match="line 2 is no JSON"):
        chats.read(file, "zendesk", PEOPLE)


def changes(items: Iterable[Item]) -> list[Any]:
    """Session, turn and text of each edit, deletions without a text."""
    found = [item for item in items if isinstance(item, TurnEdit | TurnDelete)]
    return [(one.session_id, one.turn_id, getattr(one, "text", None)) for one in found]


def test_edits_and_redactions_of_matrix_name_their_message() -> None:
    relation = {"m.relates_to": {"rel_type": "m.replace", "event_id": "$1"}}
    new = {"m.new_content": {"msgtype": "m.text", "body": "Hello, all."}}
    redaction = {**message(), "type": "m.room.redaction"}
    events = [
        message("* Hello, all.", **relation, **new),
        {**redaction, "redacts": "$2", "content": {}},
        {**redaction, "content": {"redacts": "$3"}},
    ]
    assert changes(item for _, item in matrix.events_of(ROOM, events, "@me", PEOPLE)) == [
        *((ROOM, "$1", "Hello, all."), (ROOM, "$2", None), (ROOM, "$3", None))
    ]


def test_changes_of_slack_name_their_message() -> None:
    session, number = "slack-T123ABC456-C123ABC456", "slack-1355517523.000005"
    old = {"user": "UANA", "text": "Hello", "ts": "1355517523.000005"}
    edited = {**old, "text": "Hi &amp; bye", "edited": {"user": "UANA", "ts": "1355517536.000001"}}
    changed = {"subtype": "message_changed", "message": edited, "previous_message": old}
    gone = {"subtype": "message_deleted", "deleted_ts": old["ts"], "previous_message": old}
    tomb = {**changed, "message": {**old, "subtype": "tombstone"}}
    for event, text in ((changed, "Hi & bye"), (gone, None), (tomb, None)):
        payload = {**SLACK, "event": {**SLACK["event"], **event}}  # type: ignore[dict-item]
        assert changes(slack.events_of(payload, PEOPLE)) == [(session, number, text)]


def test_changes_of_twilio_name_their_message() -> None:
    updated = {**HOOK, "EventType": "onMessageUpdated", "Body": "Ahoy, all!"}
    removed = {**STREAM, "type": "com.twilio.conversations.message.removed"}
    assert changes(twilio.events_of(updated, PEOPLE)) == [("twilio-CH01", "IM02", "Ahoy, all!")]
    assert changes(twilio.events_of(removed, PEOPLE)) == [("twilio-CH01", "IM02", None)]


def test_redacted_parts_of_intercom_are_deleted() -> None:
    gone = part(redacted=True, body="<p>This message was deleted</p>")
    for parts in ([gone, part(id="4413")], [part()]):
        found = intercom.events_of(notification("conversation_part.redacted", *parts))
        assert changes(found) == [("intercom-147", "intercom-4412", None)]
