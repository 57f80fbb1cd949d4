"""Context contrast: the same empathic phrases where they fit and where they do not.

A phrase that annotators marked in EPITOME is put into a task dialogue, or sympathy answers good
news, or congratulations answer bad news: level "none". The same phrase after bad news, or
congratulations after good news, keeps its level. What differs is the context alone, so the
model cannot tell the two apart by the response's words (Lee et al., section 5, ask for this).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from models.data.corpora import Conversation, Turn, one_hot
from models.data.dialogues import Context, Kind, contexts
from models.data.phrases import CONGRATULATIONS, rationale_phrases
from models.labels import COUNSELLOR, LEVELS, RATIONALE_ORDER

REACTIONS = "emotional_reactions"
CONGRATULATION_LEVEL = 1
OWN_REPLY = 0.5


@dataclass(frozen=True)
class Mix:
    """How many examples of each sort are made."""

    mechanism_in_task: int = 260
    mechanism_after_bad_news: int = 220
    sympathy_after_good_news: int = 200
    congratulations_after_bad_news: int = 160
    congratulations_after_good_news: int = 120


def load(
    training: list[Conversation], data_dir: Path, seed: int, mix: Mix | None = None
) -> list[Conversation]:
    """Contrast examples from the phrases of `training`'s EPITOME part; all of them train."""
    mix = mix or Mix()
    chance = random.Random(seed)  # noqa: S311 (nothing secret is drawn)
    by_kind: dict[Kind, list[Context]] = {"task": [], "good_news": [], "bad_news": []}
    for context in contexts(data_dir, "train"):
        by_kind[context.kind].append(context)
    phrases = rationale_phrases(training)
    cheers = [(phrase, CONGRATULATION_LEVEL) for phrase in CONGRATULATIONS["train"]]
    made: list[Conversation] = []

    def add(head: str, pool: list[tuple[str, int]], kind: Kind, count: int, *, fits: bool) -> None:
        for _ in range(count):
            phrase, level = chance.choice(pool)
            context, neutral = chance.choice(by_kind[kind]), chance.choice(by_kind["task"])
            # The reply to news may itself be empathic: it goes with a phrase that fits only.
            reply = context.reply if fits and chance.random() < OWN_REPLY else neutral.reply
            text = chance.choice(list(placements(phrase, reply)))
            made.append(_example(context, text, head, level if fits else 0))

    for head in RATIONALE_ORDER:
        add(head, phrases[head], "task", mix.mechanism_in_task, fits=False)
        add(head, phrases[head], "bad_news", mix.mechanism_after_bad_news, fits=True)
    add(REACTIONS, cheers, "task", mix.mechanism_in_task // 4, fits=False)
    add(REACTIONS, phrases[REACTIONS], "good_news", mix.sympathy_after_good_news, fits=False)
    add(REACTIONS, cheers, "bad_news", mix.congratulations_after_bad_news, fits=False)
    add(REACTIONS, cheers, "good_news", mix.congratulations_after_good_news, fits=True)
    return made


def _example(context: Context, text: str, head: str, level: int) -> Conversation:
    reply = Turn(COUNSELLOR, text, {head: one_hot(head, LEVELS[level])})
    turns = [*(Turn(turn.role, turn.text) for turn in context.turns), reply]
    return Conversation("contrast", context.source, turns, part="train")


def placements(phrase: str, reply: str) -> Iterator[str]:
    """The phrase alone, before and after a reply.

    >>> list(placements("I see.", "Yes."))
    ['I see.', 'I see. Yes.', 'Yes. I see.']
    """
    ended = phrase if phrase[-1] in ".!?" else f"{phrase}."
    yield ended
    yield f"{ended} {reply}"
    yield f"{reply} {ended}"
