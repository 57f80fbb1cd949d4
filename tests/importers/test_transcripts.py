"""Transcripts as meetings and speech recognisers write them."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from stream_app.client import NewTurn
from stream_app.importers import transcripts
from stream_app.importers.imported import ImportRefused, Skipped
from stream_app.importers.transcripts import Said

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


def few(text: str) -> bool:
    """Whether a text is short; keeps the model out of these tests."""
    return len(text.split()) <= 12


def read(folder: Path, name: str, content: str | bytes, **roles: str) -> list[Said]:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return transcripts.read(file, roles, few)


def said(folder: Path, name: str, content: str | bytes, **roles: str) -> list[tuple[Any, str]]:
    return [(each.speaker, each.text) for each in read(folder, name, content, **roles)]


def vtt(*cues: str) -> str:
    """Cues of three seconds each."""
    times = [f"00:00:{3 * n:02}.000 --> 00:00:{3 * n + 2:02}.000" for n in range(len(cues))]
    return "WEBVTT\n\n" + "\n\n".join(f"{a}\n{b}" for a, b in zip(times, cues, strict=True))


TALK = [("Ana", "I cannot sleep."), ("Ben", "Since when?"), ("Ana", "Tuesday.")]
TEAMS = """WEBVTT

5e2f/12-0
00:00:01.120 --> 00:00:03.480
<v Ana>I cannot
sleep.</v>

5e2f/13-0
0:0:4.0 --> 0:0:5.9
<v Ben (Contractor)>Since when?</v>

00:00:06.000 --> 00:00:07.000
<v Ana>Tuesday.</v>
"""
ZOOM = "WEBVTT\r\n\r\n1\r\n00:00:01.000 --> 00:00:03.000\r\nAna: I cannot sleep.\r\n\r\n2\r\n" + (
    "00:00:04.000 --> 00:00:05.000\r\nBen: Since when?\r\n\r\n3\r\n"
    "00:00:06.000 --> 00:00:07.000\r\nAna: Tuesday.\r\n"
)
SRT = """1
00:00:01,000 --> 00:00:03,000
[Ana]: I cannot sleep.
2
00:00:04,000 --> 00:00:05,000
Ben : Since when?

00:00:06,000 --> 00:00:07,000
>> Ana: Tuesday.
"""
SBV = """0:00:01.000,0:00:03.000
Ana: I cannot sleep.

0:00:04.000,0:00:05.000
Ben: Since when?
Ana: Tuesday.
"""
WHISPERX = json.dumps(
    {
        "segments": [
            {"start": 4.0, "end": 5.0, "text": " Since when?", "speaker": "Ben", "words": []},
            {"start": 1.0, "end": 3.0, "text": " I cannot sleep.", "speaker": "Ana"},
            {"start": 6.0, "end": 7.0, "text": " Tuesday.", "speaker": "Ana"},
        ],
        "language": "en",
    }
)
WHISPER_CPP = json.dumps(
    {
        "transcription": [
            {"offsets": {"from": 1000, "to": 3000}, "text": "Ana: I cannot sleep."},
            {"offsets": {"from": 4000, "to": 5000}, "text": "Ben: Since when?"},
            {"offsets": {"from": 6000, "to": 7000}, "text": "Ana: Tuesday."},
        ]
    }
)
PRINTED = """[00:00:01.000 --> 00:00:03.000]   Ana: I cannot sleep.
[00:04.000 --> 00:05.000]  Ben: Since when?
[00:00:06.000 --> 00:00:07.000]   Ana: Tuesday.
"""
ZOOM_TEXT = """[Ana] 10:02:13
I cannot sleep.

[Ben] 10:02:16
Since when?

[Ana] 10:02:18
Tuesday.
"""
TEAMS_TEXT = "Ana   0:03\nI cannot sleep.\n\nBen   0:05\nSince when?\n\nAna   0:09\nTuesday.\n"
REV_TEXT = "Ana (0:03):\nI cannot sleep.\n\nBen (0:05):\nSince when?\n\nAna (0:09):\nTuesday.\n"
OTTER_TEXT = TEAMS_TEXT.replace("   ", "  ") + "\nTranscribed by https://otter.ai\n"
WEBEX = """WEBVTT

1 "Ana" (3456789)
00:00:01.000 --> 00:00:03.000
I cannot sleep.

2 "Ben" (1234567)
00:00:04.000 --> 00:00:05.000
Since when?

3 "Ana" (3456789)
00:00:06.000 --> 00:00:07.000
Tuesday.
"""
MEET_TEXT = """Weekly talk (2026-03-02 09:00 GMT) - Transcript
Attendees
Ana, Ben

00:00:00

Ana: I cannot sleep.
Ben: Since when?

00:05:00

Ana: Tuesday.

Meeting ended after 00:06:10
"""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("teams.vtt", TEAMS),
        ("zoom.vtt", ZOOM),
        ("bom.vtt", b"\xef\xbb\xbf" + ZOOM.encode()),
        ("utf16.vtt", ZOOM.encode("utf-16")),
        ("utf16-bare.vtt", ZOOM.encode("utf-16-le")),
        ("short.vtt", ZOOM.replace("00:00:06.000", "0:0:66.0").replace("00:00:07.000", "0:1:7.0")),
        ("webex.vtt", WEBEX),
        ("whisper.srt", SRT),
        ("cr.srt", SRT.replace("\n", "\r")),
        ("youtube.sbv", SBV),
        ("whisperx.json", WHISPERX),
        ("cpp.json", WHISPER_CPP),
        ("printed.txt", PRINTED),
        ("zoom.txt", ZOOM_TEXT),
        ("teams.txt", TEAMS_TEXT),
        ("rev.txt", REV_TEXT),
        ("otter.txt", OTTER_TEXT),
        ("meet.txt", MEET_TEXT),
        (
            "inline.txt",
            "[00:00:01] Ana: I cannot sleep.\n00:00:04 Ben: Since when?\n0:06 - Ana: Tuesday.",
        ),
    ],
)
def test_every_format_says_the_same(tmp_path: Path, name: str, content: str | bytes) -> None:
    assert said(tmp_path, name, content) == TALK


def test_a_segment_without_a_speaker_is_not_that_of_the_speaker_before(tmp_path: Path) -> None:
    found = said(tmp_path, "a.json", WHISPERX.replace(', "speaker": "Ben"', ""))
    assert found == [TALK[0], ("(nobody named)", "Since when?"), TALK[2]]


def test_cues_are_ordered_by_their_start(tmp_path: Path) -> None:
    lines = "00:00:10.000 --> 00:00:12.000\nBen: Since when?", "00:03.000 --> 00:06.000\nAna: No."
    found = said(tmp_path, "a.vtt", "WEBVTT\n\n" + "\n\n".join(lines))
    assert found == [("Ana", "No."), ("Ben", "Since when?")]


def test_text_after_a_blank_line_belongs_to_the_cue_before_it(tmp_path: Path) -> None:
    content = (
        "WEBVTT - a title\nKind: captions\n\nNOTE by hand,\nof Ana: nothing\n\nSTYLE\n::cue {}\n\n"
        "00:01.000 --> 00:03.000\n\nAna: I stopped.\n\nNOTE Confidence: 0.9\n\n"
        "00:04.000 --> 00:06.000\nBen: Since when?\n\nAnd why?\n"
    )
    assert said(tmp_path, "a.vtt", content) == [
        ("Ana", "I stopped."),
        ("Ben", "Since when? And why?"),
    ]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (vtt("Ana: a", "Ben: b").replace("00:00:03.000", "00:00:03,000"), "cue 2"),
        (vtt("Ana: a", "Ben: b").replace("00:00:05.000", "00:61:05.000"), "cue 2"),
        (vtt("Ana: a").replace("00:00:02", "later"), "cue 1"),
        (vtt("Ana: a", "Ben: b").replace("00:00:05.000", "00:00:01.000"), "cue 2 ends before"),
        (SRT.replace("00:00:04,000", "4 s"), "cue 2"),
        (SRT.replace("04,000 -->", "04,000 ->"), "cue 2"),
        (vtt("Ana: a", "Ben: b").replace("-->", "--&gt;"), "cue 1"),
        (vtt("Ana: a") + "\n\nNOTE\nx\n\nlost words\n", "line 9 is in no cue"),
        (WHISPERX.replace('"start": 1.0', '"start": null'), "segment 2"),
        (WHISPERX.replace('"text"', '"texts"'), "segment 1"),
        ('{"text": "Hello"}', "segments"),
        ("{ oops", "JSON"),
        ("hello", "not a transcript"),
        ("", "not a transcript"),
        ("WEBVTT\n", "not a transcript"),
        (b"WEBVTT\n\n00:01.000 --> 00:02.000\nAna: caf\xe9", "UTF-8"),
        (vtt("- I cannot sleep.\n- Since when?"), "cue 1 changes the speaker"),
        (vtt("Ana: a", ">> Since when?"), "cue 2 changes the speaker"),
        (vtt("Ana: a [SPEAKER_TURN]"), "cue 1 changes the speaker"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, content: str | bytes, place: str) -> None:
    with pytest.raises(ImportRefused, match=place):
        read(tmp_path, "a.vtt", content)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match=r"gone\.vtt cannot be read"):
        transcripts.read(tmp_path / "gone.vtt")


@pytest.mark.parametrize(
    ("line", "speaker"),
    [
        ("SPEAKER_01: so", "SPEAKER_01"),
        ("[SPEAKER_01]: so", "SPEAKER_01"),
        ("[SPEAKER_01] so", "SPEAKER_01"),
        ("(speaker 1) so", "speaker 1"),
        ("Speaker 2: so", "Speaker 2"),
        ("Dr. K. Rao: so", "Dr. K. Rao"),
        ("Ludwig van Dyk: so", "Ludwig van Dyk"),
        ("O’Brien, Sean: so", "O’Brien, Sean"),
        ("李雷：so", "李雷"),
        ("- Zoë (she/her): so", "Zoë"),
        ("COUNSELLOR: so", "COUNSELLOR"),
        ("Q: so", "Q"),
        ("<v.loud Zoë Müller>so</v>", "Zoë Müller"),
        ("<v>so</v>", "(nobody named)"),
        ("<v >so</v>", "(nobody named)"),
        (r"{\an8}<font color='red'>Tom (Counsellor): so</font>", "Tom (Counsellor)"),
        ("SPEAKER_TWO: so", "SPEAKER_TWO"),
        ("speaker_2: so", "speaker_2"),
        ("<v Tom &amp; Jo>so", "Tom & Jo"),
    ],
)
def test_labels_of_every_common_form_name_the_speaker(
    tmp_path: Path, line: str, speaker: str
) -> None:
    assert said(tmp_path, "a.vtt", vtt("Ana: well", line)) == [("Ana", "well"), (speaker, "so")]


@pytest.mark.parametrize(
    "line",
    [
        "I mean: I tried to.",
        "Note: it hurts.",
        "My doctor said: stop.",
        "What I hear is this: you felt cornered.",
        "Tomorrow at 10:30 then.",
        "(crying) I cannot.",
        "[laughs] Well.",
        "honestly: no.",
        "I <3 you > me.",
        "- one thing",
    ],
)
def test_a_sentence_with_a_colon_is_no_label(tmp_path: Path, line: str) -> None:
    [found] = said(tmp_path, "a.vtt", vtt("Ana: So", line))
    assert found == ("Ana", f"So {line.removeprefix('- ')}")


def test_labels_in_small_letters_count_if_they_are_named_or_recur(tmp_path: Path) -> None:
    talk = vtt("Ana: a", "ben: b")
    assert said(tmp_path, "a.vtt", talk) == [("Ana", "a ben: b")]
    assert said(tmp_path, "a.vtt", talk, ben="client") == [("Ana", "a"), ("ben", "b")]
    often = said(tmp_path, "a.vtt", vtt("ana: a", "ben: b", "ana: c", "ben: d"))
    assert [name for name, _ in often] == ["ana", "ben", "ana", "ben"]


def test_notices_and_repeated_captions_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "a.vtt"
    file.write_text(vtt("Ana: So", "Note: recording paused", "[BLANK_AUDIO]", "it goes."))
    left_out: list[Skipped] = []
    found = transcripts.read(file, fits=few, report=left_out.append)
    assert [each.text for each in found] == ["So it goes."]
    assert [each.place for each in left_out] == ["cue 2", "cue 3"]
    rolling = vtt(
        " \nmy<00:00:00.719><c> boss</c>", "my boss\n ", "my boss\nshouted<00:04.1><c> at</c>"
    )
    assert said(tmp_path, "b.vtt", rolling) == [(None, "my boss shouted at")]
    assert said(tmp_path, "c.vtt", vtt("Ana: Yes.", "Yes.")) == [("Ana", "Yes. Yes.")]


def test_a_monologue_is_split_at_sentence_ends_and_every_word_is_kept(tmp_path: Path) -> None:
    sentences = [f"This is sentence number {n} of Dr. Rao." for n in range(6)]
    found = read(tmp_path, "a.vtt", vtt("Ana: Go on.", *(f"Ben: {each}" for each in sentences)))
    parts = [each for each in found if each.speaker == "Ben"]
    assert " ".join(each.text for each in parts) == " ".join(sentences)
    assert all(few(each.text) and each.text.endswith(".") for each in parts)
    assert [each.start for each in parts] == [3.0, 6.0, 9.0, 12.0, 15.0, 18.0]
    [long] = [vtt("Ana: " + "word " * 30)]
    assert [len(each.text.split()) for each in read(tmp_path, "a.vtt", long)] == [12, 12, 6]


def test_the_default_bundle_reads_every_part_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "a.vtt"
    file.write_text(
        vtt(*["Ben: Each of the six meetings is fifty minutes long, in room four."] * 20)
    )
    first, second = transcripts.read(file)
    assert first.text.endswith("four.")
    assert len(second.text.split()) < len(first.text.split()) < 192


def events(turns: list[Said], session: str = "s", **more: Any) -> list[Any]:
    roles = {"ben": "Therapist", "Ana": "client", "Speaker 1": "counsellor", "Zoom": "nobody"}
    return list(transcripts.events_of(turns, session, START, roles, **more))


def test_a_counsellor_has_one_id_in_all_sessions_and_a_client_one_in_each() -> None:
    turns = [Said("Ben", "b", 1, 2), Said("Ana", "a", 2, 3), Said("Speaker 1", "c", 3, 4)]
    found = [events(turns, session) for session in ("one", "two")]
    ids = [[each.speaker_id for each in of if isinstance(each, NewTurn)] for of in found]
    assert ids == [["ben", "one Ana", "one Speaker 1"], ["ben", "two Ana", "two Speaker 1"]]
    given = events(turns, ids={"speaker 1": "h-2"})
    assert given[2].speaker_id == "h-2"


def test_turns_have_times_and_the_session_ends_with_the_last_word() -> None:
    turns = [Said("Ben", "b", 1.5, 9), Said("Ana", "a", 2, 3)]
    first, second, end = events(turns, consent=True, team="north")
    assert first.occurred_at.isoformat() == "2026-03-02T09:00:01.500000+00:00"
    assert (first.role.value, first.consent, first.channel, first.team) == (
        *("counsellor", True, "voice"),
        "north",
    )
    assert second.role.value == "client"
    assert end.occurred_at.isoformat() == "2026-03-02T09:00:09+00:00"


def test_who_speaks_must_be_said() -> None:
    left_out: list[Skipped] = []
    assert len(events([Said("Zoom", "recorded", 0, 1)], report=left_out.append)) == 1
    assert len(left_out) == 1
    with pytest.raises(ImportRefused, match=r"who is \(nobody named\)"):
        events([Said(None, "a", 0, 1)])
    nobody = transcripts.events_of(
        [Said(None, "a", 0, 1)], "s", START, {"(nobody named)": "client"}
    )
    assert next(nobody).role.value == "client"
    with pytest.raises(ImportRefused, match="one of client, seeker"):
        list(transcripts.events_of([Said("Ana", "a", 0, 1)], "s", START, {"Ana": "boss"}))
    long = events([Said("Ana", "a", 0, 1)], session="s" * 300)
    assert len(long[0].session_id) == len(long[0].speaker_id) == 200
