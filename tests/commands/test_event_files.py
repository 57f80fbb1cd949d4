"""Events from JSON lines, sample sessions and ConvoKit folders."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from stream_app.contracts.events import Domain, SessionEnd, Turn, decode
from stream_app.errors import ContractError
from stream_app.recordings.event_files import (
    InputError,
    raw_events,
    sample_events,
    sample_sessions,
    timed_events,
)
from tests.store.batches import turn

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)


def test_lines_are_unchanged_and_blank_ones_keep_their_number(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    lines = [turn(), b'  {"odd": 1}  ', b"", b"\xff\x00 not json", turn(1)]
    file.write_bytes(b"\r\n".join(lines))
    assert list(raw_events(file)) == lines
    assert [event.value for event in timed_events(file)] == [line for line in lines if line]


def test_events_are_timed_by_occurred_at_and_never_go_back(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    times = ["10:00:00Z", "10:00:07Z", "10:00:03Z", "10:00:59", "12:00:09+02:00"]
    lines = [turn(occurred_at=f"2026-01-05T{time}") for time in times]
    file.write_bytes(b"\n".join([*lines, b"oops", turn(session_id="\ud800")]))
    events = list(timed_events(file))
    assert [event.at for event in events] == [0.0, 7.0, 7.0, 7.0, 9.0, 9.0, 9.0]
    assert [event.key for event in events] == [b"s"] * 5 + [b""] * 2


def test_a_sample_sessions_file_is_read_as_events_that_keep_their_line_number() -> None:
    for path in sample_sessions():
        events = list(raw_events(path))
        lines = path.read_bytes().splitlines()
        assert len(events) == len(lines)
        assert events[0] == b""
        session = json.loads(lines[0])
        start = datetime(2000, 1, 1, tzinfo=UTC)
        wanted = sample_events(path, session["session_id"], start, 1.0)
        assert events[1:] == [event.value for event in wanted]


def test_a_damaged_line_of_a_sample_session_is_named(tmp_path: Path) -> None:
    header = sample_sessions()[0].read_bytes().splitlines()[0]
    file = tmp_path / "mine.jsonl"
    for bad in (b"oops", b"[]", b'{"type": "turn"}', b'{"type": "turn", "offset_s": 1e300}'):
        file.write_bytes(b"\n".join([header, b"", bad]))
        with pytest.raises(InputError, match=r"mine\.jsonl, line 3: not a line of a sample"):
            list(raw_events(file))


def test_an_event_of_the_unknown_type_session_is_left_to_the_contract(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    lines = [b'{"type": "session", "session_id": "s"}', turn()]
    file.write_bytes(b"\n".join(lines))
    assert list(raw_events(file)) == lines


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.jsonl"):
        list(raw_events(tmp_path / "gone.jsonl"))


def shipped(path: Path) -> list[Any]:
    found = []
    for event in sample_events(path, "id", NOW, 1.0):
        try:
            found.append(decode(event.value))
        except ContractError as problem:
            found.append(problem)
    return found


def test_the_sample_sessions_cover_enough_turns_and_domains() -> None:
    paths = sample_sessions()
    assert len(paths) >= 24
    turns = [event for path in paths for event in shipped(path) if isinstance(event, Turn)]
    assert len(turns) >= 700
    assert {turn.domain for turn in turns} == set(Domain)


def test_every_shipped_session_decodes_and_ends_but_the_broken_one() -> None:
    *good, broken = sample_sessions()
    for path in good:
        events = shipped(path)
        assert not [event for event in events if isinstance(event, ContractError)], path
        assert sum(isinstance(event, SessionEnd) for event in events) == 1, path
        assert {event.session_id for event in events} == {"id"}
    reasons = {e.code for e in shipped(broken) if isinstance(e, ContractError)}
    assert {"schema", "not-json", "not-utf-8", "nul-byte", "empty-text"} <= reasons


def test_speed_shortens_pauses_also_in_occurred_at() -> None:
    path = sample_sessions()[0]
    slow, fast = (sample_events(path, "id", NOW, speed) for speed in (1.0, 4.0))
    assert fast[-1].at == pytest.approx(slow[-1].at / 4)
    elapsed = (decode(fast[-1].value).occurred_at - NOW).total_seconds()
    assert elapsed == pytest.approx(fast[-1].at, abs=1e-5)


def convokit(folder: Path, *utterances: dict[str, Any] | str, **files: Any) -> Path:
    """A small corpus; the speakers have roles."""
    speakers = {"joan": {"meta": {"role": "seeker"}}, "bo": {"meta": {"role": "listener"}}}
    contents = {"speakers": speakers, "conversations": {}, **files}
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    lines = [u if isinstance(u, str) else json.dumps(u, ensure_ascii=False) for u in utterances]
    (folder / "utterances.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def utterance(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"u{number}",
        "conversation_id": "c1",
        "speaker": "joan",
        "text": f"Text {number}.",
        "timestamp": 1_700_000_000 + number,
        "meta": {},
        **changes,
    }


def test_a_corpus_becomes_turns_numbered_within_their_conversation(tmp_path: Path) -> None:
    folder = convokit(
        tmp_path,
        utterance(1),
        utterance(2, conversation_id="c2", speaker="bo"),
        utterance(3, speaker="bo", text="One\u2028two\u0085three"),
        utterance(4, conversation_id=None, root="c2", speaker=None, user="joan"),
        conversations={"c1": {"meta": {"domain": "peer-support", "consent": True}}},
    )
    turns = [decode(raw) for raw in raw_events(folder)]
    assert [(t.session_id, t.seq, t.turn_id) for t in turns] == [
        ("c1", 0, "u1"),
        ("c2", 0, "u2"),
        ("c1", 1, "u3"),
        ("c2", 1, "u4"),
    ]
    assert [t.speaker_role.value for t in turns] == ["client", "counsellor", "counsellor", "client"]
    assert [t.consent for t in turns] == [True, None, True, None]
    assert turns[2].text == "One\u2028two\u0085three"
    assert turns[0].domain is Domain.PEER_SUPPORT
    assert turns[0].occurred_at == datetime.fromtimestamp(1_700_000_001, UTC)


@pytest.mark.parametrize(
    ("timestamp", "at"),
    [(None, "2000-01-01T00:00:00"), (12.5, "2000-01-01T00:00:12.5"), (9e8, "1998-07-09T16:00:00")],
)
def test_a_corpus_without_dates_has_plausible_times(
    tmp_path: Path, timestamp: float | None, at: str
) -> None:
    [event] = raw_events(
        convokit(tmp_path, utterance(1, timestamp=timestamp, meta={"role": "user"}))
    )
    assert decode(event).occurred_at == datetime.fromisoformat(at).replace(tzinfo=UTC)


def test_an_utterances_role_overrides_its_speakers(tmp_path: Path) -> None:
    folder = convokit(tmp_path, utterance(1, meta={"role": "therapist"}))
    [event] = raw_events(folder)
    assert json.loads(event)["role"] == "therapist"


def test_older_corpora_without_the_meta_wrapper_are_read(tmp_path: Path) -> None:
    folder = convokit(tmp_path, utterance(1), speakers={"joan": {"role": "patient"}})
    [event] = raw_events(folder)
    assert json.loads(event)["role"] == "patient"


@pytest.mark.parametrize(
    ("bad", "code", "word"),
    [
        (utterance(2, speaker="nobody"), "schema", "role"),
        (utterance(2, meta={"role": "zanzibar"}), "schema", "role"),
        ("{ oops", "not-json", ""),
        ("[]", "schema", ""),
        ({"id": "u", "speaker": "joan"}, "schema", "text"),
        (utterance(2, speaker=None, meta={"role": "client"}), "schema", "speaker_id"),
        (json.dumps(utterance(2, text="\ud83d")), "lone-surrogate", ""),
        (utterance(2, timestamp="yesterday"), "schema", "occurred_at"),
        (utterance(2, text=None), "empty-text", ""),
        (utterance(2, text=7), "schema", "text"),
    ],
)
def test_one_utterance_that_cannot_be_used_is_a_dead_letter_of_its_line(
    tmp_path: Path, bad: Any, code: str, word: str
) -> None:
    folder = convokit(tmp_path, utterance(3), bad, utterance(1))
    first, odd, second = raw_events(folder)
    assert [decode(raw).text for raw in (first, second)] == ["Text 1.", "Text 3."]
    with pytest.raises(ContractError, match=word or None) as problem:
        decode(odd)
    assert problem.value.code == code


def test_utterances_are_ordered_by_time_within_their_conversation(tmp_path: Path) -> None:
    folder = convokit(
        tmp_path,
        utterance(3),
        utterance(9, conversation_id="c2", timestamp="2026-03-02 10:01:00"),
        "",
        utterance(2, timestamp=1_700_000_002_000),
        utterance(8, conversation_id="c2", timestamp="2026-03-02T10:00:00Z"),
        utterance(1, timestamp="1700000001"),
        utterance(4, timestamp=None),
    )
    found = [(decode(raw).turn_id, decode(raw).seq) if raw else None for raw in raw_events(folder)]
    assert found == [
        *(("u1", 0), ("u8", 0), None, ("u4", 1), ("u9", 1), ("u2", 2), ("u3", 3)),
    ]


def test_replies_belong_to_their_conversation_wherever_they_stand(tmp_path: Path) -> None:
    replies = {"u3": "u2", "u2": "u1", "u1": None, "u4": "lost", "u5": "u6", "u6": "u5"}
    changes = {"conversation_id": None}
    folder = convokit(
        tmp_path,
        *(utterance(int(own[1]), **changes, **{"reply-to": to}) for own, to in replies.items()),
    )
    found = {decode(raw).turn_id: decode(raw).session_id for raw in raw_events(folder)}
    circle = found.pop("u6")
    assert found == {"u1": "u1", "u2": "u1", "u3": "u1", "u4": "lost", "u5": circle}


def test_speakers_of_old_corpora_are_users_and_times_may_be_finer(tmp_path: Path) -> None:
    folder = convokit(tmp_path, utterance(1, timestamp=1_700_000_001_000_000), utterance(2))
    (folder / "speakers.json").rename(folder / "users.json")
    first, second = (decode(raw) for raw in raw_events(folder))
    assert first.occurred_at == second.occurred_at - timedelta(seconds=1)


def test_a_time_that_is_no_number_is_none(tmp_path: Path) -> None:
    folder = convokit(tmp_path, utterance(1), utterance(2, timestamp=float("nan")), utterance(3))
    assert [decode(raw).turn_id for raw in raw_events(folder)] == ["u1", "u2", "u3"]


def test_a_foreign_role_takes_no_number_and_roles_may_have_capitals(tmp_path: Path) -> None:
    speakers = {"joan": {"meta": {"role": "Client"}}, "bot": {"meta": {"role": "observer"}}}
    folder = convokit(
        tmp_path, utterance(1), utterance(2, speaker="bot"), utterance(3), speakers=speakers
    )
    first, _, second = raw_events(folder)
    assert [decode(raw).seq for raw in (first, second)] == [0, 1]


def test_a_conversation_without_an_id_is_that_of_the_first_utterance(tmp_path: Path) -> None:
    loose = [
        utterance(1, conversation_id=None),
        utterance(2, conversation_id=None, **{"reply-to": "u1"}),
        utterance(3, conversation_id=None, reply_to="u2"),
        utterance(4, conversation_id=17),
    ]
    turns = [decode(raw) for raw in raw_events(convokit(tmp_path, *loose))]
    assert [(t.session_id, t.seq) for t in turns] == [("u1", 0), ("u1", 1), ("u1", 2), ("17", 0)]


def test_a_byte_order_mark_is_no_part_of_a_corpus(tmp_path: Path) -> None:
    folder = convokit(tmp_path, utterance(1))
    for file in folder.iterdir():
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert len(list(raw_events(folder))) == 1


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("speakers.json", b"{ oops", "not valid JSON"),
        ("conversations.json", b"[]", "not a JSON object"),
        ("utterances.jsonl", b"caf\xe9", "UTF-8"),
        ("speakers.json", b"{}", "a role in `meta`"),
    ],
)
def test_a_damaged_corpus_is_refused_with_a_sentence(
    tmp_path: Path, name: str, content: bytes, word: str
) -> None:
    folder = convokit(tmp_path, utterance(1))
    (folder / name).write_bytes(content)
    with pytest.raises(InputError, match=word):
        list(raw_events(folder))


def test_a_folder_that_is_not_a_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"speakers\.json"):
        list(raw_events(tmp_path))
