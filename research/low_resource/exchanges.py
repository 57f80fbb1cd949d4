"""Exchanges of two turns: corpora to contrast, and counselling turns with labels to test on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.data import Conversation, esconv
from models.data.corpora import read_rows
from models.data.dialogues import CHATS, Pool, contexts
from models.data.split import fold_of, key_of
from models.labels import CLIENT, COUNSELLOR, RATIONALE_ORDER
from models.model.batches import seeded_random
from research.folds import FOLDS, SEED

SENTENCE = re.compile(r"[^.!?]+[.!?]*")


@dataclass(frozen=True)
class Exchange:
    """What the speaker or client says ("" if nothing), and the listener's or therapist's answer."""

    before: str
    answer: str


@dataclass(frozen=True)
class Target:
    """Labelled exchanges: `empathic` and `question` are [n]; `fold` [n] is each one's fold.

    `words` says what the labels are.
    """

    name: str
    words: str
    exchanges: list[Exchange]
    empathic: NDArray[np.bool_]
    question: NDArray[np.bool_]
    fold: NDArray[np.int64]


Source = Callable[[list[Conversation], Path], Iterator[Exchange]]


def _answers(item: Conversation) -> Iterator[tuple[Exchange, int]]:
    """Counsellor turns with the client turn before, and their positions."""
    before = ""
    for position, turn in enumerate(item.turns):
        if turn.role == COUNSELLOR:
            yield Exchange(before, turn.text), position
        elif turn.role == CLIENT:
            before = turn.text


def _chats(conversations: list[Conversation], data_dir: Path) -> Iterator[Exchange]:
    """The first answer in EmpatheticDialogues, whose listeners were to respond with empathy."""
    del conversations
    for row in read_rows(CHATS, CHATS.files[0], data_dir):
        said = [utterance["text"] for utterance in row["utterances"][:2]]
        if len(said) == 2:
            yield Exchange(*said)


def _service(conversations: list[Conversation], data_dir: Path) -> Iterator[Exchange]:
    """One system turn of each service dialogue, which none calls empathic."""
    del conversations
    pools: tuple[Pool, ...] = ("train", "probe")
    for pool in pools:
        for context in contexts(data_dir, pool):
            if context.kind == "task":
                yield Exchange(context.turns[-1].text, context.reply)


def _esconv(conversations: list[Conversation], data_dir: Path) -> Iterator[Exchange]:
    """The supporter's third answer in the ordinary chats of ESConv, past the greetings."""
    del data_dir
    for item in conversations:
        if item.corpus == "esconv" and not esconv.has_failed(item):
            answers = [answer for answer, _ in _answers(item)]
            if len(answers) > 2:
                yield answers[2]


def _epitome(conversations: list[Conversation], data_dir: Path) -> Iterator[Exchange]:
    """Responses of EPITOME outside fold 0, whatever their labels."""
    del data_dir
    for item in conversations:
        if item.corpus == "epitome" and fold_of(key_of(item), SEED, FOLDS) != 0:
            yield Exchange(item.turns[0].text, item.turns[1].text)


SOURCES: dict[str, Source] = {
    "chats": _chats,
    "esconv": _esconv,
    "epitome": _epitome,
    "service": _service,
}
"""Corpora that can be either side of a contrast; a loader of your own is an entry here."""
CONTRASTS = (("chats", "service"), ("esconv", "service"), ("epitome", "service"))
"""Empathic against not empathic."""
CONTROLS = (("chats", "esconv"), ("epitome", "esconv"), ("epitome", "chats"))
"""Empathic against empathic: what a model learns from a difference of corpora alone."""


def drawn(
    source: str, conversations: list[Conversation], data_dir: Path, most: int
) -> list[Exchange]:
    """At most `most` exchanges of a corpus, in an order by hash.

    Raises ValueError for an unknown corpus.
    """
    if source not in SOURCES:
        message = f"no corpus {source}; there are {', '.join(SOURCES)}"
        raise ValueError(message)
    found = list(SOURCES[source](conversations, data_dir))
    seeded_random("low_resource", source, SEED).shuffle(found)
    return found[:most]


def annomi(conversations: list[Conversation]) -> Target:
    """Therapist turns of AnnoMI; reflections stand for empathy, which AnnoMI does not label.

    A reflection restates what the client says, means or feels; MISC's definition of high empathy,
    which Wu et al. annotated, asks for that understanding.
    """
    rows = [
        (answer, turn.labels["reflection"][0] < 0.5, fold_of(key_of(item), SEED, FOLDS))
        for item in conversations
        if item.corpus == "annomi"
        for answer, position in _answers(item)
        if "reflection" in (turn := item.turns[position]).labels
    ]
    return _target("annomi", "AnnoMI, reflection or not", rows)


def epitome(conversations: list[Conversation], *, all_folds: bool = False) -> Target:
    """Responses of EPITOME's fold 0, or of all folds; empathic if any mechanism is above level 0.

    Contrasts may learn from the other folds' texts, so that only fold 0 tests them.
    """
    rows = []
    for item in conversations:
        if item.corpus == "epitome":
            fold = fold_of(key_of(item), SEED, FOLDS)
            labels = item.turns[1].labels
            shown = any(labels[head][0] < 0.5 for head in RATIONALE_ORDER)
            if all_folds or fold == 0:
                rows.append((Exchange(item.turns[0].text, item.turns[1].text), shown, fold))
    return _target("epitome", "EPITOME, any mechanism or none (fold 0)", rows)


def _target(name: str, words: str, rows: list[tuple[Exchange, bool, int]]) -> Target:
    return Target(
        name,
        words,
        [exchange for exchange, _, _ in rows],
        np.array([shown for _, shown, _ in rows], bool),
        np.array([is_question(exchange.answer) for exchange, _, _ in rows], bool),
        np.array([fold for _, _, fold in rows], np.int64),
    )


def sentences(text: str) -> list[str]:
    """Sentences by their punctuation; a text without any is one sentence.

    >>> sentences("So you smoke. How often?")
    ['So you smoke.', 'How often?']
    """
    return [found for match in SENTENCE.findall(text) if (found := match.strip())] or [text]


def is_question(text: str) -> bool:
    """Whether more than half of the words are in sentences with a question mark (section 3.2.2).

    >>> is_question("I see. How are you feeling today?"), is_question("So you smoke. Why?")
    (True, False)
    """
    parts = sentences(text)
    asked = sum(len(part.split()) for part in parts if part.endswith("?"))
    return asked > len(text.split()) / 2
