"""Context contrast: the same words where they fit and where they do not.

A phrase marked in EPITOME, alone or together with a neutral reply, answers two contexts: one that
calls for it, where it keeps its level, and one that does not, where its level is "none".

    phrase               fits after    does not fit
    a mechanism's        bad news      a service dialogue
    sympathy             bad news      good news
    congratulations      good news     bad news, a service dialogue

Both examples of a pair have the same response, so that its words cannot distinguish them (as
recommended by Lee et al., section 5). Some fitting phrases are combined with the original reply.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from models.data.corpora import Conversation, Turn, one_hot
from models.data.dialogues import Context, Kind, contexts, later_news
from models.data.phrases import CONGRATULATIONS, is_cheer, rationale_phrases
from models.labels import COUNSELLOR, RATIONALE_ORDER
from stream_app.core.measures.heads import LEVELS

CORPUS = "contrast"
REACTIONS = "emotional_reactions"
CONGRATULATION_LEVEL = 1

Phrases = list[tuple[str, int]]


@dataclass(frozen=True)
class Mix:
    """Number of pairs of each sort, and of fitting phrases combined with the original reply."""

    mechanism: int = 220
    sympathy: int = 1000
    cheers: int = 600
    cheers_in_task: int = 100
    beside_real_reply: int = 120


def load(
    training: list[Conversation], data_dir: Path, seed: int, mix: Mix | None = None
) -> list[Conversation]:
    """Build contrast examples from the phrases of `training`'s EPITOME part, for training."""
    mix = mix or Mix()
    chance = random.Random(seed)  # noqa: S311 (nothing secret is drawn)
    by_kind: dict[Kind, list[Context]] = {"task": [], "good_news": [], "bad_news": []}
    for context in (*contexts(data_dir, "train"), *later_news(data_dir, "train")):
        by_kind[context.kind].append(context)
    phrases = rationale_phrases(training)
    sympathy = [(phrase, level) for phrase, level in phrases[REACTIONS] if not is_cheer(phrase)]
    cheers = [(phrase, CONGRATULATION_LEVEL) for phrase in CONGRATULATIONS["train"]]
    made: list[Conversation] = []

    def pairs(head: str, pool: Phrases, fitting: Kind, other: Kind, count: int) -> None:
        for _ in range(count):
            phrase, level = chance.choice(pool)
            neutral = chance.choice(by_kind["task"]).reply
            text = chance.choice(list(placements(phrase, neutral)))
            made.append(_example(chance.choice(by_kind[fitting]), text, head, level))
            made.append(_example(chance.choice(by_kind[other]), text, head, 0))

    def beside_real_reply(head: str, pool: Phrases, kind: Kind) -> None:
        for _ in range(mix.beside_real_reply):
            phrase, level = chance.choice(pool)
            context = chance.choice(by_kind[kind])
            _, *beside = placements(phrase, context.reply)
            made.append(_example(context, chance.choice(beside), head, level))

    for head in RATIONALE_ORDER:
        pool = sympathy if head == REACTIONS else phrases[head]
        pairs(head, pool, "bad_news", "task", mix.mechanism)
        beside_real_reply(head, pool, "bad_news")
    pairs(REACTIONS, sympathy, "bad_news", "good_news", mix.sympathy)
    pairs(REACTIONS, cheers, "good_news", "bad_news", mix.cheers)
    pairs(REACTIONS, cheers, "good_news", "task", mix.cheers_in_task)
    beside_real_reply(REACTIONS, cheers, "good_news")
    return made


def _example(context: Context, text: str, head: str, level: int) -> Conversation:
    reply = Turn(COUNSELLOR, text, {head: one_hot(head, LEVELS[level])})
    turns = [*(Turn(turn.role, turn.text) for turn in context.turns), reply]
    return Conversation(CORPUS, context.source, turns, part="train")


def placements(phrase: str, reply: str) -> Iterator[str]:
    """Yield the phrase alone, before and after a reply.

    >>> list(placements("I see.", "Yes."))
    ['I see.', 'I see. Yes.', 'Yes. I see.']
    """
    ended = phrase if phrase[-1] in ".!?" else f"{phrase}."
    yield ended
    yield f"{ended} {reply}"
    yield f"{reply} {ended}"
