"""Whole sessions with what the people who were listened to said of them.

Three sources, and no label that an annotator gave for what the words show:

- ESConv (Liu et al. 2021, section 4): the seeker's survey after the chat (`empathy` and `relevance`
  1-5, emotion intensity before and after 1-5); in the file of failed chats, `feedback` 1-5 on a
  seeker's turn for the supporter's last turns.
- User satisfaction simulation (Sun et al. 2021, section 3): several raters give each user turn of
  a service dialogue 1-5, 3 being neutral.
- AnnoMI (Wu et al. 2022): whether a session shows high or low quality of motivational interviewing
  (the publisher's judgement of the recording, not a client's).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from models.data.corpora import CORPORA, read_rows
from models.labels import CLIENT, COUNSELLOR

Source = Literal["esconv", "esconv_failed", "sgd", "mwoz", "ccpe", "redial", "annomi"]
SERVICE: tuple[Source, ...] = ("sgd", "mwoz", "ccpe", "redial")
OVERALL = "OVERALL"
"""Text of the row that closes a service dialogue with a rating of the whole."""
LOW, GOOD = (1, 2), (4, 5)


@dataclass
class HeardTurn:
    """One utterance; `feedback` 1-5 stands on seeker turns, `satisfaction` on users' turns."""

    role: int
    text: str
    feedback: int | None = None
    satisfaction: tuple[int, ...] = ()


@dataclass
class HeardSession:
    """A session; what is not known is None. `key` is what folds are drawn by."""

    source: Source
    key: str
    turns: list[HeardTurn]
    empathy: int | None = None
    relevance: int | None = None
    fall: int | None = None
    overall: tuple[int, ...] = ()
    quality: str | None = None
    topic: str | None = None
    positions: dict[int, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.positions = {
            role: [i for i, turn in enumerate(self.turns) if turn.role == role]
            for role in (CLIENT, COUNSELLOR)
        }

    @property
    def low(self) -> bool | None:
        """Failed or rated 1-2, against rated 4-5; None for what is neither (3, or no rating)."""
        if self.source == "esconv_failed":
            return True
        if self.source != "esconv" or self.empathy is None or self.empathy == 3:
            return None
        return self.empathy in LOW


def load_sessions(data_dir: Path, service_dialogues: int | None = None) -> list[HeardSession]:
    """All sessions in file order; the first `service_dialogues` of each service file, or all."""
    return [
        *_esconv(data_dir),
        *_service(data_dir, service_dialogues),
        *_annomi(data_dir),
    ]


def _esconv(data_dir: Path) -> Iterator[HeardSession]:
    corpus = CORPORA["esconv"]
    for file in corpus.files:
        source: Source = "esconv_failed" if "failed" in file else "esconv"
        for row in read_rows(corpus, file, data_dir):
            survey = row.get("survey_score", {}).get("seeker", {})
            before = _number(survey.get("initial_emotion_intensity"))
            after = _number(survey.get("final_emotion_intensity"))
            yield HeardSession(
                source,
                f"esconv:{row['conversation_id']}",
                [
                    HeardTurn(
                        COUNSELLOR if entry["speaker"] == "supporter" else CLIENT,
                        entry["text"],
                        feedback=_number(entry.get("feedback")),
                    )
                    for entry in row["dialog"]
                    if entry["text"].strip()
                ],
                empathy=_number(survey.get("empathy")),
                relevance=_number(survey.get("relevance")),
                fall=None if before is None or after is None else before - after,
            )


def _service(data_dir: Path, most: int | None) -> Iterator[HeardSession]:
    corpus = CORPORA["service"]
    for file, source in zip(corpus.files, SERVICE, strict=True):
        for number, row in enumerate(read_rows(corpus, file, data_dir)):
            if number == most:
                break
            turns: list[HeardTurn] = []
            overall: tuple[int, ...] = ()
            for entry in row["turns"]:
                given = tuple(int(value) for value in entry["satisfaction"])
                if entry["text"] == OVERALL:
                    overall = given
                elif entry["text"].strip():
                    user = entry["speaker"] == "user"
                    role = CLIENT if user else COUNSELLOR
                    turns.append(HeardTurn(role, entry["text"], satisfaction=given))
            if turns:
                key = f"service:{row['conversation_id']}"
                yield HeardSession(source, key, turns, overall=overall)


def _annomi(data_dir: Path) -> Iterator[HeardSession]:
    corpus = CORPORA["annomi"]
    for file in corpus.files:
        for row in read_rows(corpus, file, data_dir):
            yield HeardSession(
                "annomi",
                f"annomi:{row['conversation_id']}",
                [
                    HeardTurn(
                        COUNSELLOR if entry["speaker"] == "therapist" else CLIENT, entry["text"]
                    )
                    for entry in row["utterances"]
                    if entry["text"].strip()
                ],
                quality=row.get("mi_quality"),
                topic=(row.get("topic") or "").strip() or None,
            )


def _number(value: Any) -> int | None:
    return None if value in (None, "") else int(value)


def soft(rating: float) -> float:
    """A rating of 1-5 as a target in [0, 1].

    >>> soft(1), soft(4)
    (0.0, 0.75)
    """
    return (rating - 1.0) / 4.0


def above_neutral(ratings: tuple[int, ...]) -> float:
    """Share of raters above neutral, those at neutral counting half; in [0, 1].

    >>> above_neutral((3, 3, 2)), above_neutral((4, 3, 4))
    (0.3333333333333333, 0.8333333333333334)
    """
    return sum(1.0 if value > 3 else 0.5 if value == 3 else 0.0 for value in ratings) / len(ratings)
