"""Cases of the context probe: reserved phrases where they fit and where they do not.

    does not fit    task         an empathic phrase in a service dialogue (Lee et al., 4.5)
                    task_brief   the same, where only the last user turn is known
                    good_news    sympathy after good news
                    bad_news     congratulations after bad news
    fits            bad_news     an empathic phrase after bad news
                    bad_later    the same, two turns later in the conversation
                    good_news    congratulations after good news
                    epitome      held-out responses with their own seeker post
    no phrase       task_plain   what was really replied in the service dialogue

The two variants in length (`task_brief`, `bad_later`) expose a scorer that recognises service
dialogues by the number of turns that precede the reply.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from models.data.contrast import placements
from models.data.corpora import Conversation, Turn
from models.data.dialogues import Context, contexts, later_news
from models.data.phrases import CONGRATULATIONS, PROBE_PHRASES, normal
from models.labels import COUNSELLOR, RATIONALE_ORDER

REACTIONS = "emotional_reactions"
PLACEMENTS = ("alone", "before", "after")
LEES = 3
"""Number of phrases per mechanism from Lee et al.'s Table 2."""


@dataclass(frozen=True)
class Case:
    """One response to classify. `fits` tells whether the mechanism is appropriate there.

    `fits` is None for the control condition, where no phrase was inserted.
    """

    condition: str
    mechanism: str
    fits: bool | None
    turns: tuple[Turn, ...]
    source: str
    phrase: str = ""
    placement: str = ""

    @property
    def words(self) -> tuple[tuple[int, str], ...]:
        """Roles and texts, response last; cases with equal words are scored once."""
        return tuple((turn.role, turn.text) for turn in self.turns)


def cases(data_dir: Path, heldout: list[Conversation], size: int, seed: int) -> list[Case]:
    """Build all cases, `size` per condition and mechanism, with `heldout` EPITOME responses."""
    pool = _Pools(data_dir, seed)
    made = list(_unchanged(pool.task, size))
    for head in RATIONALE_ORDER:
        phrases = PROBE_PHRASES[head]
        for name, known in (("task", pool.task), ("task_brief", pool.task_brief)):
            made += _inserted(name, head, phrases, known, size, fits=False)
        for name, known in (("bad_news", pool.bad_news), ("bad_later", pool.bad_later)):
            made += _inserted(name, head, phrases, known, size, fits=True)
    sympathy, cheers = PROBE_PHRASES[REACTIONS], CONGRATULATIONS["probe"]
    neutral = pool.neutral_reply
    made += _inserted("good_news", "sympathy", sympathy, pool.good_news, size, neutral, fits=False)
    made += _inserted("bad_news", "cheers", cheers, pool.bad_news, size, neutral, fits=False)
    made += _inserted("good_news", "cheers", cheers, pool.good_news, size, fits=True)
    return made + list(_epitome(heldout))


def head_of(mechanism: str) -> str:
    """The head that scores a case: sympathy and congratulations are emotional reactions."""
    return mechanism if mechanism in RATIONALE_ORDER else REACTIONS


class _Pools:
    """Contexts of the probe pool by kind, shuffled, without duplicates of training contexts."""

    def __init__(self, data_dir: Path, seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311 (nothing secret is drawn)
        trained = (*contexts(data_dir, "train"), *later_news(data_dir, "train"))
        seen = {said(context.turns) for context in trained}
        own = [c for c in contexts(data_dir, "probe") if said(c.turns) not in seen]
        chance.shuffle(own)
        self.task = _in_turn([context for context in own if context.kind == "task"])
        self.task_brief = [
            Context("task", context.turns[-1:], context.reply, context.source)
            for context in self.task
            if said(context.turns[-1:]) not in seen
        ]
        self.good_news = [context for context in own if context.kind == "good_news"]
        self.bad_news = [context for context in own if context.kind == "bad_news"]
        later = later_news(data_dir, "probe")
        self.bad_later = [context for context in later if context.kind == "bad_news"]
        chance.shuffle(self.bad_later)

    def neutral_reply(self, number: int) -> str:
        """A reply from a service dialogue; replies to news may be empathic by themselves."""
        return self.task[number % len(self.task)].reply


def said(turns: tuple[Turn, ...]) -> tuple[str, ...]:
    """The turns' texts alone, to detect contexts with equal text."""
    return tuple(normal(turn.text) for turn in turns)


def _in_turn(known: list[Context]) -> list[Context]:
    """Alternate between the corpora for as long as each has contexts left."""
    by_source: dict[str, list[Context]] = {}
    for context in known:
        by_source.setdefault(context.source, []).append(context)
    longest = max(map(len, by_source.values()), default=0)
    return [own[i % len(own)] for i in range(longest) for own in by_source.values()]


def _inserted(
    name: str,
    mechanism: str,
    phrases: tuple[str, ...],
    known: list[Context],
    size: int,
    reply: Callable[[int], str] | None = None,
    *,
    fits: bool,
) -> Iterator[Case]:
    """Use phrases and placements equally often, with the given reply or the original."""
    for number in range(size):
        context = known[number % len(known)]
        phrase = phrases[number % len(phrases)]
        where = number // len(phrases) % len(PLACEMENTS)
        rest = reply(number) if reply else context.reply
        text = list(placements(phrase, rest))[where]
        yield _case(name, mechanism, context, text, fits, phrase, PLACEMENTS[where])


def _unchanged(known: list[Context], size: int) -> Iterator[Case]:
    for number in range(size):
        context = known[number % len(known)]
        for head in RATIONALE_ORDER:
            yield _case("task_plain", head, context, context.reply, fits=None)


def _case(
    name: str,
    mechanism: str,
    context: Context,
    text: str,
    fits: bool | None,
    phrase: str = "",
    placement: str = "",
) -> Case:
    turns = (*context.turns, Turn(COUNSELLOR, text))
    return Case(name, mechanism, fits, turns, context.source, phrase, placement)


def _epitome(heldout: list[Conversation]) -> Iterator[Case]:
    """Responses in which annotators found a mechanism, weak or strong."""
    for conversation in heldout:
        if conversation.corpus != "epitome":
            continue
        for head, distribution in conversation.turns[-1].labels.items():
            if distribution[0] < 1:
                yield Case("epitome", head, fits=True, turns=tuple(conversation.turns), source="")
