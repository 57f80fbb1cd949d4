"""MITI counts compared with human codes, on synthetic sessions with known results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import typer
from typer.testing import CliRunner

from models.data import annomi
from models.data.corpora import Conversation, Turn, one_hot
from models.data.split import key_of, part_of
from models.evaluate import miti
from models.evaluate.miti import HEADS, SHIPPED, WAYS
from models.labels import CLIENT, COUNSELLOR, HEADS_BY_NAME
from models.pages import document
from models.pages.miti import miti_section
from stream_app.contracts.scores import Expressed
from stream_app.core.measures.miti import THRESHOLDS
from stream_app.core.measures.window import ScoringRequest
from stream_app.core.session.ports import Encoding, HeadScores
from tests.fakes import FakeScorer
from tests.models.tiny import write_rows

WORDS = {
    "How?": {"question": "open"},
    "Right?": {"question": "closed"},
    "Hurt.": {"reflection": "simple"},
    "Lost.": {"reflection": "complex"},
    "Walk.": {"input": "advice"},
    "Okay.": {},
}


def labels_of(text: str) -> dict[str, str]:
    """The human codes of a text: its last question and, if any, its complex reflection."""
    found: dict[str, str] = {}
    for sentence in text.split():
        if found.get("reflection") != "complex" or "reflection" not in WORDS[sentence]:
            found |= WORDS[sentence]
    return {head: found.get(head, "none") for head in HEADS}


class Knowing(FakeScorer):
    """A scorer that returns the human codes and ignores the window."""

    def encode(self, texts: list[str], roles: object = None) -> list[Encoding]:
        return [Encoding(text.encode(), {}, truncated=False) for text in texts]

    def score(self, requests: list[ScoringRequest]) -> list[HeadScores]:
        return [self._known(request) for request in requests]

    def _known(self, request: ScoringRequest) -> HeadScores:
        found = labels_of(request.turn.vectors.decode())
        heads = {
            head: {label: float(label == found[head]) for label in HEADS_BY_NAME[head].labels}
            for head in HEADS
        }
        return HeadScores(Expressed(**heads), {}, {}, 1.0, [])


def session(key: str, *texts: str) -> Conversation:
    """A session with a client turn before each counsellor turn, unless its text starts with +."""
    turns: list[Turn] = []
    for text in texts:
        if not text.startswith("+"):
            turns.append(Turn(CLIENT, "Well."))
        text_only = text.removeprefix("+")
        found = labels_of(text_only)
        labels = {head: one_hot(head, found[head]) for head in HEADS}
        turns.append(Turn(COUNSELLOR, text_only, labels))
    return Conversation("annomi", key, turns)


SESSIONS = [
    session("a", *["How? Right?", "Hurt. Lost.", "Okay. Lost. How?", "Walk."] * 4),
    session("b", *["Right?", "+Right?", "Hurt. Hurt.", "Okay."] * 4),
    session("c", *["How?", "Lost.", "Lost.", "Hurt. How?", "Walk. Walk."] * 3),
    session("d", *["How? How? How?", "Lost. Hurt. Hurt.", "Hurt."] * 5),
]


def measured(scorer: FakeScorer, sessions: Sequence[Conversation]) -> dict[str, Any]:
    return miti.measure(scorer, sessions, resamples=20)


def test_a_scorer_that_agrees_with_people_has_no_error() -> None:
    figures = measured(Knowing(), SESSIONS)["all"]
    assert figures["sessions"] == len(SESSIONS)
    for measure in THRESHOLDS:
        row = figures["ways"][SHIPPED][measure]
        assert (row["sessions"], row["error"], row["same_standing"]) == (4, 0.0, 1.0)
        assert row["more_error"] == {"value": 0.0, "low": 0.0, "high": 0.0, "resamples": 20}
    assert figures["ways"][SHIPPED]["reflection_to_question"]["spearman"]["value"] == 1.0
    assert all(row["error"] == 0.0 for row in figures["codes"].values())
    assert figures["constant"]["reflection_to_question"]["error"] > 0.0


def test_counting_each_sentence_exceeds_human_counts() -> None:
    """Humans count the three questions and three reflections of the volley in d as one each."""
    ways = measured(Knowing(), SESSIONS)["all"]["ways"]
    apart = ways["sentences, probabilities, each counted"]
    once = ways["sentences, probabilities, one of a kind in a volley"]
    marks = ways["turns, probabilities, a question for each question mark"]
    for way in (apart, marks):
        row = way["reflection_to_question"]
        assert row["error"] > 0.0
        assert row["more_error"]["value"] == pytest.approx(row["error"])
    assert apart["complex_reflection_share"]["error"] > 0.0
    assert once["complex_reflection_share"]["error"] == 0.0


def test_consecutive_turns_are_one_volley_for_both_roles() -> None:
    [reads] = [miti.read_session(Knowing(), SESSIONS[1])]
    assert [read.follows for read in reads[:4]] == [False, True, False, False]
    found = miti.summarised(reads, WAYS[SHIPPED][0], apart=False)
    assert (found.turns, found.volleys) == (16, 12)
    assert found.counts["question"] == 4.0


def test_uncoded_turns_are_excluded() -> None:
    bare = session("e", "How?", "Hurt.")
    bare.turns[1].labels.clear()
    assert len(miti.read_session(Knowing(), bare)) == 1
    empty = Conversation("annomi", "f", [])
    assert measured(Knowing(), [*SESSIONS, empty]) == measured(Knowing(), SESSIONS)


def test_a_constant_scorer_has_an_error_and_no_rank() -> None:
    class Deaf(Knowing):
        def _known(self, request: ScoringRequest) -> HeadScores:
            heads = {
                head: dict.fromkeys(HEADS_BY_NAME[head].labels, 1 / len(HEADS_BY_NAME[head].labels))
                for head in HEADS
            }
            return HeadScores(Expressed(**heads), {}, {}, 1.0, [])

    rows = measured(Deaf(), SESSIONS)["all"]["ways"][SHIPPED]
    assert rows["complex_reflection_share"]["error"] > 0.1
    assert rows["complex_reflection_share"]["spearman"]["value"] is None


def test_held_out_sessions_follow_the_split() -> None:
    numbers = [n for n in range(60) if part_of(f"annomi:{n}", miti.SEED) == "test"][:2]
    given = [session(str(n), "How?", "Lost.") for n in numbers]
    assert [part_of(key_of(each), miti.SEED) for each in given] == ["test", "test"]
    found = measured(Knowing(), [*SESSIONS, *given])
    unseen = sum(part_of(key_of(each), miti.SEED) == "test" for each in (*SESSIONS, *given))
    assert found["held_out"]["sessions"] == unseen
    assert found["all"]["sessions"] == len(SESSIONS) + 2


def written(folder: Path, sessions: Sequence[Conversation]) -> Path:
    """Write the sessions in the publisher's format."""

    def note(turn: Turn) -> dict[str, object]:
        if turn.role == CLIENT:
            return {"talk_type": "neutral"}
        found = {
            head: label if (label := labels_of(turn.text)[head]) != "none" else None
            for head in HEADS
        }
        return {"annotator": 1, "behaviour": "other", **found}

    rows = [
        {
            "conversation_id": each.split_key,
            "mi_quality": "high",
            "utterances": [
                {
                    "speaker": "client" if turn.role == CLIENT else "therapist",
                    "text": turn.text,
                    "annotations": [note(turn)],
                }
                for turn in each.turns
            ],
        }
        for each in sessions
    ]
    folder.mkdir()
    write_rows(folder / "annomi.jsonl.gz", rows)
    return folder


def test_the_command_measures_a_shipped_bundle_for_the_page(tmp_path: Path) -> None:
    data, out = written(tmp_path / "data", SESSIONS[:3]), tmp_path / "evaluation" / "miti.json"
    assert len(list(annomi.load(data))) == 3
    folder = Path("stream_app/bundles/nano").resolve()
    for _ in range(2):
        result = CliRunner().invoke(
            miti_app(), ["--bundle", str(folder), "--out", str(out), "--data-dir", str(data)]
        )
        assert result.exit_code == 0, result.output
    content = json.loads(out.read_text(encoding="utf-8"))
    [name] = content["bundles"]
    assert "nano" in name
    assert content["bundles"][name]["all"]["sessions"] == 3
    conduct = next(part for part in document.PARTS if part.name == "conduct")
    page = document.page(conduct, {"miti": content}, out.parent)
    assert document.PAGE_LINK.sub("](../", miti_section(content)) in page
    for words in ("R:Q, all sessions", "persuade with permission", *WAYS):
        assert words in page


def test_a_missing_corpus_is_named(tmp_path: Path) -> None:
    arguments = ["--bundle", "stream_app/bundles/nano", "--data-dir", str(tmp_path)]
    result = CliRunner().invoke(miti_app(), arguments)
    assert result.exit_code == 1
    assert "annomi.jsonl.gz" in result.output


def miti_app() -> typer.Typer:
    app = typer.Typer()
    app.command()(miti.main)
    return app
