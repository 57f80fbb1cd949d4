"""Whole sessions with the ratings of the people who were listened to.

The three sources contain no expert annotation of expressed empathy:

- ESConv (Liu et al. 2021, section 4): the seeker's survey after the chat (`empathy` and `relevance`
  1-5, emotion intensity before and after 1-5); in the file of failed chats, `feedback` 1-5 on a
  seeker's turn rates the supporter's last turns.
- User satisfaction simulation (Sun et al. 2021, section 3): several raters give each user turn of
  a service dialogue 1-5, 3 being neutral.
- AnnoMI (Wu et al. 2022): whether a session shows high or low quality of motivational interviewing
  (judged by the publisher of the recording, not by a client).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from models.data.corpora import read_rows
from models.data.registry import CORPORA
from models.labels import CLIENT, COUNSELLOR

Source = Literal["esconv", "esconv_failed", "sgd", "mwoz", "ccpe", "redial", "annomi"]
SERVICE: tuple[Source, ...] = ("sgd", "mwoz", "ccpe", "redial")
OVERALL = "OVERALL"
"""Text of the final row of a service dialogue, which rates the whole dialogue."""
LOW, GOOD = (1, 2), (4, 5)


@dataclass
class RatedTurn:
    """One utterance; seeker turns may have `feedback` 1-5, users' turns `satisfaction`."""

    role: int
    text: str
    feedback: int | None = None
    satisfaction: tuple[int, ...] = ()


@dataclass
class RatedSession:
    """A session; unknown values are None. Folds are assigned by `key`."""

    source: Source
    key: str
    turns: list[RatedTurn]
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
        """True if failed or rated 1-2, False if rated 4-5; None otherwise (3, or no rating)."""
        if self.source == "esconv_failed":
            return True
        if self.source != "esconv" or self.empathy is None or self.empathy == 3:
            return None
        return self.empathy in LOW


def load_sessions(data_dir: Path, service_dialogues: int | None = None) -> list[RatedSession]:
    """Load all sessions in file order; `service_dialogues` limits each service file."""
    return [
        *_esconv(data_dir),
        *_service(data_dir, service_dialogues),
        *_annomi(data_dir),
    ]


def _esconv(data_dir: Path) -> Iterator[RatedSession]:
    corpus = CORPORA["esconv"]
    for file in corpus.files:
        source: Source = "esconv_failed" if "failed" in file else "esconv"
        for row in read_rows(corpus, file, data_dir):
            survey = row.get("survey_score", {}).get("seeker", {})
            before = _number(survey.get("initial_emotion_intensity"))
            after = _number(survey.get("final_emotion_intensity"))
            yield RatedSession(
                source,
                f"esconv:{row['conversation_id']}",
                [
                    RatedTurn(
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


def _service(data_dir: Path, most: int | None) -> Iterator[RatedSession]:
    corpus = CORPORA["service"]
    for file, source in zip(corpus.files, SERVICE, strict=True):
        for number, row in enumerate(read_rows(corpus, file, data_dir)):
            if number == most:
                break
            turns: list[RatedTurn] = []
            overall: tuple[int, ...] = ()
            for entry in row["turns"]:
                given = tuple(int(value) for value in entry["satisfaction"])
                if entry["text"] == OVERALL:
                    overall = given
                elif entry["text"].strip():
                    user = entry["speaker"] == "user"
                    role = CLIENT if user else COUNSELLOR
                    turns.append(RatedTurn(role, entry["text"], satisfaction=given))
            if turns:
                key = f"service:{row['conversation_id']}"
                yield RatedSession(source, key, turns, overall=overall)


def _annomi(data_dir: Path) -> Iterator[RatedSession]:
    corpus = CORPORA["annomi"]
    for file in corpus.files:
        for row in read_rows(corpus, file, data_dir):
            yield RatedSession(
                "annomi",
                f"annomi:{row['conversation_id']}",
                [
                    RatedTurn(
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
    """Scale a rating of 1-5 to a target in [0, 1].

    >>> soft(1), soft(4)
    (0.0, 0.75)
    """
    return (rating - 1.0) / 4.0


def above_neutral(ratings: tuple[int, ...]) -> float:
    """Share of raters above neutral, in [0, 1]; neutral raters count half.

    >>> above_neutral((3, 3, 2)), above_neutral((4, 3, 4))
    (0.3333333333333333, 0.8333333333333334)
    """
    return sum(1.0 if value > 3 else 0.5 if value == 3 else 0.0 for value in ratings) / len(ratings)
