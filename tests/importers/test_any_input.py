"""No message of a service, and no file, ends an importer with anything but a sentence."""

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_app.client import NewTurn
from stream_app.client.requests import encode
from stream_app.contracts.events import MAX_ID_CHARS
from stream_app.importers import chats, cues, transcripts
from stream_app.importers.imported import ImportRefused, Skipped
from tests.importers.test_chats import (
    ADDED,
    HOOK,
    PEOPLE,
    RESOURCE,
    SLACK,
    STREAM,
    TRIGGER,
    message,
    notification,
    part,
)
from tests.importers.test_transcripts import MEET_TEXT, SBV, SRT, TEAMS, WHISPERX, ZOOM_TEXT

RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.sampled_from(["", " ", "x" * 300, "\ud83d", "a\x00b", "<p><", "> x", "2026-03-02", "é"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from(["id", "type", "body"]), st.integers(), max_size=2),
)
PAYLOADS: list[tuple[chats.Service, Any]] = [
    (
        "matrix",
        message("> <@a:b> x\n\nHi", **{"m.relates_to": {"m.in_reply_to": {"event_id": "$"}}}),
    ),
    ("intercom", notification("conversation.user.replied", part(), part())),
    ("intercom", notification("conversation.user.created")),
    ("intercom", notification("conversation.admin.closed", part("close"))["data"]["item"]),
    ("zendesk", TRIGGER),
    ("zendesk", ADDED),
    ("slack", SLACK),
    ("slack", SLACK["event"]),
    ("twilio", HOOK),
    ("twilio", STREAM),
    ("twilio", RESOURCE),
]


def paths(value: Any) -> list[list[Any]]:
    """The ways to every part of a JSON value."""
    found: list[list[Any]] = [[]]
    if isinstance(value, dict):
        found += [[key, *rest] for key, inner in value.items() for rest in paths(inner)]
    if isinstance(value, list):
        found += [[place, *rest] for place, inner in enumerate(value) for rest in paths(inner)]
    return found


@st.composite
def mutated(draw: st.DrawFn) -> tuple[chats.Service, Any]:
    service, payload = draw(st.sampled_from(PAYLOADS))
    whole = [copy.deepcopy(payload)]
    for _ in range(draw(st.integers(1, 3))):
        *way, last = [0, *draw(st.sampled_from(paths(whole[0])))]
        inner: Any = whole
        for step in way:
            inner = inner[step]
        if isinstance(inner, dict) and draw(st.booleans()):
            del inner[last]
        else:
            inner[last] = draw(VALUES)
    return service, whole[0]


@RELAXED
@given(mutated())
def test_an_odd_message_is_an_event_or_is_left_out(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[chats.Service, Any]
) -> None:
    service, payload = case
    file = tmp_path_factory.getbasetemp() / "odd.json"
    file.write_text(json.dumps([payload, payload]))
    for item in chats.read(file, service, PEOPLE, "room"):
        if isinstance(item, Skipped):
            str(item).encode()
            continue
        encode(item)
        assert 1 <= len(item.session_id) <= MAX_ID_CHARS
        if isinstance(item, NewTurn):
            assert item.text.strip()
            assert 1 <= len(item.speaker_id) <= MAX_ID_CHARS


FILES = [TEAMS, SRT, SBV, WHISPERX, ZOOM_TEXT, MEET_TEXT]
PIECES = st.sampled_from(
    [
        "",
        "\n",
        "\n\n",
        "-->",
        "00:00",
        "<v",
        "<v >",
        ":",
        "[",
        "{",
        "NOTE\n",
        "9" * 30,
        "\ud7ff",
        "- ",
    ]
)


@RELAXED
@given(st.sampled_from(FILES), st.lists(st.tuples(st.integers(0, 500), PIECES, st.integers(0, 9))))
def test_an_odd_transcript_is_read_or_refused_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, text: str, edits: list[tuple[int, str, int]]
) -> None:
    for place, piece, cut in edits:
        text = text[:place] + piece + text[place + cut :]
    file = tmp_path_factory.getbasetemp() / "odd.vtt"
    file.write_text(text, "utf-8")
    try:
        found = transcripts.read(file, fits=lambda part: len(part) < 40)
    except ImportRefused:
        return
    assert [each.start for each in cues.read(file)] == sorted(c.start for c in cues.read(file))
    assert all(each.text.strip() and each.start <= each.end for each in found)
