"""Exports can be read back: CSV, Parquet, JSON lines, and ConvoKit by ``rapport score``."""

import csv
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from stream_app.findings.exports import paging
from stream_app.findings.exports.columns import SESSIONS, session_columns, turn_columns
from stream_app.inference.bundles.bundle import load
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.sessions.sessions import SessionFilter
from tests.store.batches import turn
from tests.web.api.conftest import WORDS
from tests.web.server import Web

Rows = list[dict[str, Any]]


def download(web: Web, name: str, path: str, **params: Any) -> bytes:
    with web.client(name) as client:
        answer = client.get(f"/exports/{path}", params=params)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-disposition"].startswith("attachment; filename=")
        return answer.content


def read(chosen: str, raw: bytes) -> Rows:
    match chosen:
        case "csv":
            return list(csv.DictReader(io.StringIO(raw.decode("utf-8-sig"), newline="")))
        case "parquet":
            return list(parquet.read_table(io.BytesIO(raw)).to_pylist())
        case _:
            return [json.loads(line) for line in raw.splitlines()]


@pytest.mark.parametrize("chosen", ["csv", "parquet", "jsonl"])
def test_session_exports_have_one_row_per_session(web: Web, chosen: str) -> None:
    rows = read(chosen, download(web, "sue", "sessions", format=chosen))
    by_id = {row["session_id"]: row for row in rows}
    assert {"north-1", "north-2", "south-1"} <= by_id.keys()
    assert len(by_id) == len(rows)
    assert list(rows[0]) == [column.name for column in SESSIONS]
    with web.client() as sue:
        card = sue.get("/sessions/north-1").json()
    row = by_id["north-1"]
    for name in ("low_empathy_risk", "empathy_index", "empathy_percentile", "answered_share"):
        assert float(row[name]) == card[name]
    assert float(row["explorations_mean"]) == card["mechanisms"]["explorations"]["mean"]
    assert int(row["counsellors"]) == 1
    assert int(row["turns"]) == 6


@pytest.mark.parametrize("chosen", ["csv", "parquet", "jsonl"])
def test_the_miti_summary_has_columns(web: Web, chosen: str) -> None:
    facts = {"session_id": "mi", "team": "mi", "approach": "motivational-interviewing"}
    web.commit(*(turn(seq, occurred_at="2026-01-06T10:00:00Z", **facts) for seq in range(24)))
    rows = read(chosen, download(web, "sue", "sessions", format=chosen))
    by_id = {row["session_id"]: row for row in rows}
    with web.client() as sue:
        miti = sue.get("/sessions/mi").json()["miti"]
    row, other = by_id["mi"], by_id["north-1"]
    assert int(row["miti_volleys"]) == 12
    for name, measure in miti["measures"].items():
        assert float(row[f"miti_{name}"]) == measure["value"]
    assert float(row["miti_adherent"]) == miti["mi_adherent"]
    assert float(row["miti_non_adherent"]) == miti["mi_non_adherent"]
    counts = row["miti_counts"]
    assert (json.loads(counts) if isinstance(counts, str) else counts) == miti["counts"]
    assert {other[name] for name in other if name.startswith("miti_")} <= {None, ""}


@pytest.mark.parametrize("chosen", ["csv", "parquet", "jsonl"])
def test_turn_exports_have_one_row_per_turn_with_its_final_score(web: Web, chosen: str) -> None:
    rows = read(chosen, download(web, "nora", "turns", format=chosen, status="closed"))
    assert [(row["session_id"], int(row["seq"])) for row in rows] == [
        ("north-1", seq) for seq in range(6)
    ]
    assert list(rows[0]) == [column.name for column in turn_columns([], with_text=False)]
    with web.client() as sue:
        turns = sue.get("/sessions/north-1/turns").json()["items"]
        points = sue.get("/sessions/north-1/history").json()["items"]
    expected = turns[1]["scores"][0]
    assert rows[1]["stage"] == "final"
    assert int(rows[1]["explorations"]) == expected["expressed"]["explorations"]["level"]
    evidence = rows[1]["expressed"]
    evidence = evidence if isinstance(evidence, dict) else json.loads(evidence)
    for level in expected["expressed"].values():
        if isinstance(level, dict):
            level.pop("rationale_utf16", None)  # for browsers alone
    assert evidence == expected["expressed"]
    assert [float(row["low_empathy_risk"]) for row in rows[1::2]] == [
        point["low_empathy_risk"] for point in points
    ]
    assert {row["speaker"] for row in rows} == {"client-1", "counsellor-1"}


def test_exports_contain_text_only_on_request_of_an_authorised_role(web: Web) -> None:
    for name in ("sue", "ana", "cleo"):
        for path in ("sessions", "turns"):
            for chosen in ("csv", "jsonl"):
                assert WORDS.encode() not in download(web, name, path, format=chosen)
        table = read("parquet", download(web, name, "turns", format="parquet"))
        assert "text" not in table[0]
    with web.client("ana") as ana:
        for path in ("turns", "convokit"):
            assert ana.get(f"/exports/{path}", params={"text": True}).status_code == 403
    for name, sessions in (("nora", {"north-1", "north-2"}), ("cleo", {"north-2"})):
        for chosen in ("csv", "parquet", "jsonl"):
            raw = download(web, name, "turns", format=chosen, text=True, domain="counselling")
            rows = read(chosen, raw)
            assert {row["session_id"] for row in rows} == sessions
            assert all(WORDS in row["text"] for row in rows)


def test_exports_and_their_transcript_reads_are_audited(web: Web) -> None:
    def trail(**params: str) -> Rows:
        with web.client("ada") as ada:
            return list(ada.get("/audit", params=params).json()["items"])

    download(web, "sam", "turns", format="csv", text=True, domain="counselling")
    assert trail(by="sam", action="export")[0]["detail"] == "turns as csv with text"
    reads = trail(by="sam", action="read transcript")
    assert [(row["session_id"], row["detail"]) for row in reads] == [("south-1", "export of turns")]
    before = len(trail(action="read transcript"))
    download(web, "ana", "turns", format="csv")
    assert trail(by="ana", action="export")[0]["detail"] == "turns as csv"
    assert len(trail(action="read transcript")) == before


def test_a_formula_in_a_session_id_is_escaped(web: Web) -> None:
    web.commit(turn(session_id="=cmd|' /C calc'!A0", team="west"))
    rows = read("csv", download(web, "sue", "sessions", format="csv", team="west"))
    assert [row["session_id"] for row in rows] == ["'=cmd|' /C calc'!A0"]


@pytest.mark.parametrize("chosen", ["csv", "parquet", "jsonl"])
def test_an_empty_export_is_a_valid_file(web: Web, chosen: str) -> None:
    assert read(chosen, download(web, "sue", "turns", format=chosen, team="nobody")) == []


def test_text_with_quotes_and_line_breaks_is_preserved(web: Web) -> None:
    text = 'a "quoted", line\r\nand another\nعربي 𝄞 ; \u2028 end'
    web.commit(turn(session_id="odd", team="odd", text=text))
    for chosen in ("csv", "parquet", "jsonl"):
        [row] = read(chosen, download(web, "sue", "turns", format=chosen, text=True, team="odd"))
        assert row["text"] == text, chosen


def test_rows_are_read_in_small_pages(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions and turns that do not fit on one page are read in several small pages."""
    monkeypatch.setattr(paging, "SESSIONS_PER_PAGE", 2)
    monkeypatch.setattr(paging, "TURNS_PER_PAGE", 4)
    sue = Person("sue", PersonRole.SUPERVISOR, all_teams=True)
    chosen = SessionFilter(domain="counselling")
    pages = list(paging.turn_rows(web.store, sue, chosen, with_text=False))
    assert len(pages) > 3
    assert max(len(page) for page in pages) <= 8
    found = [(row["session_id"], row["seq"]) for page in pages for row in page]
    assert found == sorted(found)
    assert len(found) == len(set(found)) == 18


def test_scoring_an_exported_convokit_corpus_gives_the_same_rows(web: Web, tmp_path: Path) -> None:
    raw = download(web, "nora", "convokit", domain="counselling")
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path)
    folder = tmp_path / "rapport-corpus"
    assert {path.name for path in folder.iterdir()} == {
        "utterances.jsonl",
        "speakers.json",
        "conversations.json",
        "corpus.json",
        "index.json",
    }
    lines = [json.loads(line) for line in (folder / "utterances.jsonl").read_text().splitlines()]
    speakers = json.loads((folder / "speakers.json").read_text())
    conversations = json.loads((folder / "conversations.json").read_text())
    index = json.loads((folder / "index.json").read_text())
    assert conversations.keys() == {"north-1", "north-2"}
    assert {line["speaker"] for line in lines} == speakers.keys()
    ids = {line["id"] for line in lines}
    assert all(line["reply-to"] is None or line["reply-to"] in ids for line in lines)
    assert sum(line["reply-to"] is None for line in lines) == 2
    assert lines[1]["meta"]["expressed"]["explorations"]["level"] in (0, 1, 2)
    assert lines[1]["meta"].keys() - {"turn_id"} == index["utterances-index"].keys()
    out = tmp_path / "scores.jsonl"
    subprocess.run(
        [sys.executable, "-m", "stream_app.cli", "score", str(folder), "-o", str(out)],
        check=True,
        capture_output=True,
        timeout=100,
    )
    scored = [json.loads(line) for line in out.read_text().splitlines()]
    turns = {(row["session_id"], row["seq"]) for row in scored if row["type"] == "turn_score"}
    assert turns == {(line["conversation_id"], line["meta"]["seq"]) for line in lines}
    assert {row["session_id"] for row in scored if row["type"] == "session_score"} == {
        "north-1",
        "north-2",
    }


def test_a_convokit_corpus_for_an_analyst_has_scores_but_no_text(web: Web) -> None:
    raw = download(web, "ana", "convokit", domain="counselling")
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        everything = b"".join(archive.read(name) for name in archive.namelist())
        lines = archive.read("rapport-corpus/utterances.jsonl").splitlines()
        corpus = json.loads(archive.read("rapport-corpus/corpus.json"))
    assert WORDS.encode() not in everything
    assert corpus["text"] is False
    assert {json.loads(line)["text"] for line in lines} == {""}


def test_every_column_has_a_description() -> None:
    heads = load().manifest.heads
    for table in (session_columns(with_text=True), turn_columns(heads, with_text=True)):
        names = [column.name for column in table]
        assert len(names) == len(set(names))
        assert all(column.meaning for column in table)
