"""Answers without a label, for a teacher to judge: a client with answers meant for other clients.

Words alone do not tell such answers apart, and there are as many of them as one likes. A student
learns from the teacher's judgements of them (Hinton et al. 2015).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer

from models.data import esconv
from models.data.corpora import read_rows
from models.labels import CLIENT, COUNSELLOR
from models.reader import corpora, written
from models.reader.examples import Example

DIALOGUES = 2_500
"""Clients of EmpatheticDialogues, after those of `corpora.next_answers`."""
CHAT_TURNS = 4_000
"""Answers of support chats."""
NEAREST = 3
"""Answers to other clients of the same voice, for each of its clients."""
SWAPS = (
    "he she",
    "his her",
    "him her",
    "mum dad",
    "mother father",
    "brother sister",
    "son daughter",
    "husband wife",
    "aunt uncle",
    "boss colleague",
    "friend neighbour",
    "dog cat",
    "yesterday tomorrow",
    "today yesterday",
    "before after",
    "always never",
    "first last",
    "still no-longer",
    "more less",
    "lost found",
    "failed passed",
    "won lost",
    "left stayed",
    "start stop",
    "alone together",
    "early late",
    "old new",
    "one two",
    "two three",
    "work school",
    "relieved disappointed",
    "proud ashamed",
    "angry sad",
    "scared happy",
    "good bad",
    "don't do",
    "didn't did",
    "can't can",
    "isn't is",
    "wasn't was",
    "not really",
)
"""Pairs of words; exchanging one makes an answer say something else of the client."""

Turns = tuple[tuple[int, str], ...]
Exchange = tuple[Turns, str]


def edited(text: str, chance: random.Random) -> str | None:
    """The answer with one word exchanged, or None if it has none of `SWAPS`."""
    found = []
    for match in re.finditer(r"[A-Za-z']+", text):
        other = _OTHERS.get(match.group().lower())
        if other is not None:
            found.append((match.span(), chance.choice(other)))
    if not found:
        return None
    (begin, end), word = chance.choice(found)
    if text[begin].isupper():
        word = word[:1].upper() + word[1:]
    return text[:begin] + word + text[end:]


def _others() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in SWAPS:
        one, two = (word.replace("-", " ") for word in pair.split())
        found.setdefault(one, []).append(two)
        if " " not in two:
            found.setdefault(two, []).append(one)
    return found


_OTHERS = _others()


def dialogues(data_dir: Path) -> Iterator[Example]:
    """First answers of dialogues, those to the two most similar clients, and edited ones."""
    known = {example.key for example in corpora.load_answers(data_dir)}
    rows = []
    for row in read_rows(corpora.DIALOGUES, corpora.DIALOGUES.files[0], data_dir):
        said = row["utterances"]
        if row["conversation_id"] not in known and len(said) > 1:
            rows.append((row["conversation_id"], said[0]["text"], said[1]["text"]))
    rows = rows[corpora.NEXT_ANSWERS :][:DIALOGUES]
    chance = random.Random(17)  # noqa: S311  # a choice of words, no secret
    near = nearest([client for _, client, _ in rows], 2)
    for (key, client, answer), others in zip(rows, near, strict=True):
        answers = [answer, *(rows[other][2] for other in others)]
        answers += filter(None, [edited(answer, chance)])
        for text in answers:
            yield Example("mined_dialogues", key, COUNSELLOR, text, ((CLIENT, client),))


def chats(data_dir: Path) -> Iterator[Example]:
    """Supporters' turns of ESConv, every other one with a word exchanged."""
    found = []
    for item in esconv.load(data_dir):
        turns = [(turn.role, turn.text) for turn in item.turns]
        for place, (role, text) in enumerate(turns):
            if role == COUNSELLOR and place:
                found.append((item.split_key, text, tuple(turns[max(0, place - 3) : place])))
    chance = random.Random(18)  # noqa: S311  # a choice of words, no secret
    for key, text, before in found[:: max(1, len(found) // CHAT_TURNS)]:
        yield Example("mined_chats", key, COUNSELLOR, text, before)
        other = edited(text, chance)
        if other is not None and chance.random() < 0.5:
            yield Example("mined_chats", key, COUNSELLOR, other, before)


def voices(examples: Sequence[Example]) -> Iterator[Example]:
    """Clients of each voice with answers to its most similar other clients, and edited answers."""
    by_voice: dict[str, dict[Turns, list[str]]] = {}
    for example in examples:
        if example.corpus.startswith(("quartets", "edits", "manners", "plain_answers")):
            own = by_voice.setdefault(example.key, {}).setdefault(example.turns, [])
            own.append(example.text)
    chance = random.Random(19)  # noqa: S311  # a choice of words, no secret
    for voice, clients in sorted(by_voice.items()):
        contexts = list(clients)
        near = nearest([turns[-1][1] for turns in contexts], NEAREST)
        for turns, others in zip(contexts, near, strict=True):
            answers = [chance.choice(clients[contexts[other]]) for other in others]
            answers += filter(None, [edited(text, chance) for text in clients[turns][:2]])
            for text in answers:
                if text not in clients[turns]:
                    yield Example("mined_voices", voice, COUNSELLOR, text, turns)


def nearest(texts: Sequence[str], number: int) -> list[list[int]]:
    """For each text the places of the most similar others, by tf-idf."""
    words = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    found: list[list[int]] = []
    for start in range(0, len(texts), 1000):
        near = (words[start : start + 1000] @ words.T).toarray()
        for place in range(near.shape[0]):
            near[place, start + place] = -1.0
        found += [[int(other) for other in row] for row in (-near).argsort(1)[:, :number]]
    return found


def load(data_dir: Path, contrast: Path = written.CONTRAST) -> list[Example]:
    """All answers without a label."""
    spoken = written.load(data_dir, contrast)
    return [*dialogues(data_dir), *chats(data_dir), *voices(spoken)]
