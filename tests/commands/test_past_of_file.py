"""`rapport score` of a file with edits and deletions: the scores that hold after all of them."""

import io
import json
from pathlib import Path
from typing import Any

from stream_app.recordings import past_of_file
from stream_app.recordings import scoring as score
from tests.fakes import delete, edit, end, turn
from tests.store.batches import pipeline

PLAIN = [turn(seq=seq) for seq in range(9)]
OTHER = [turn("other", seq) for seq in range(5)]


def scored(log: list[bytes], tmp_path: Path, batch: int = 4) -> tuple[list[str], list[Any]]:
    """The turns and session of the output, and its sessions' rows."""
    file = tmp_path / "recording.jsonl"
    file.write_bytes(b"\n".join(log))
    out = io.BytesIO()
    revised = past_of_file.revised_sessions([file])
    score.run(pipeline(), iter(log), out, batch, with_alerts=False, revised=revised)
    rows = sorted(map(json.loads, out.getvalue().splitlines()), key=json.dumps)
    turns = [row for row in rows if row["type"] == "turn_score" and row["session_id"] == "s"]
    return [f"{row['seq']} {row['stage']}" for row in turns], rows


def test_a_file_with_edits_gives_the_rows_of_one_without(tmp_path: Path) -> None:
    log = [*PLAIN, *OTHER, edit(seq=2), delete(seq=6), turn(seq=9), end()]
    log += [edit(seq=9, text="Last."), end("other")]
    plain = [*PLAIN, *OTHER, turn(seq=9, text="Last."), end(), end("other")]
    plain[2], plain[6] = turn(seq=2, text="I mean this at 2."), turn(seq=6, text="")
    names, rows = scored(log, tmp_path)
    assert len(names) == len(set(names)) == 18
    assert rows == scored(plain, tmp_path, batch=100)[1]


def test_only_sessions_with_an_edit_are_remembered(tmp_path: Path) -> None:
    file = tmp_path / "recording.jsonl"
    file.write_bytes(b"\n".join([*PLAIN, *OTHER, edit(seq=2), delete("third")]))
    assert past_of_file.revised_sessions([file]) == {"s", "third"}
    assert past_of_file.revised_sessions([tmp_path]) == set()
    assert "any" in past_of_file.revised_sessions([tmp_path / "pipe"])
