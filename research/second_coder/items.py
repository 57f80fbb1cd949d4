"""What is coded: an utterance with the turns around it, from a corpus, events or a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from models.agreement.corpora import majority, numbered
from models.data import annomi, empathetic_intents, epitome, esconv
from models.data.corpora import Conversation
from models.data.split import held_out, split
from models.labels import HEADS_BY_NAME, ROLE_NAMES
from stream_app.contracts.events import Consent, ConsentStatus, Turn, decode
from stream_app.errors import ContractError

BEFORE: Final = 3
AFTER: Final = 3
"""Turns around the coded one, as in Xu & Jiang 2024, section 5.5."""
LOADERS: Final = {
    "annomi": annomi.load,
    "empathetic_intents": empathetic_intents.load,
    "epitome": epitome.load,
    "esconv": esconv.load,
}
SEED: Final = 17
FOLDS: Final = 5
RoleName = Literal["client", "counsellor"]


class ItemsError(ValueError):
    """The items cannot be read."""


@dataclass(frozen=True)
class Utterance:
    """One turn."""

    role: str
    text: str


@dataclass(frozen=True)
class Item:
    """An utterance to code.

    `turns[target]` is coded; the others are its context. `experts`: labels that people gave, by
    variable; `phrases`: the words that they marked as evidence, where they marked any.
    """

    session: str
    item: str
    turns: tuple[Utterance, ...]
    target: int
    experts: dict[str, str] = field(default_factory=dict)
    phrases: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def role(self) -> str:
        """Who speaks the coded utterance."""
        return self.turns[self.target].role

    @property
    def text(self) -> str:
        """The coded utterance."""
        return self.turns[self.target].text


def of_conversation(session: str, turns: Sequence[tuple[str, Utterance]]) -> Iterator[Item]:
    """Every turn of a session as an item; `turns` are names and utterances in order."""
    for place, (name, _) in enumerate(turns):
        first = max(0, place - BEFORE)
        near = tuple(said for _, said in turns[first : place + AFTER + 1])
        yield Item(session, name, near, place - first)


def of_corpus(conversations: Iterable[Conversation]) -> Iterator[Item]:
    """The labelled turns; a label needs a majority of the annotators."""
    for session, number, conversation in numbered(conversations):
        turns = [
            (f"{number}/{seq}", Utterance(ROLE_NAMES[turn.role], turn.text))
            for seq, turn in enumerate(conversation.turns)
        ]
        items = of_conversation(session, turns)
        for turn, item in zip(conversation.turns, items, strict=True):
            if turn.labels:
                places = {name: majority(shares) for name, shares in turn.labels.items()}
                yield Item(
                    item.session,
                    item.item,
                    item.turns,
                    item.target,
                    {
                        name: HEADS_BY_NAME[name].labels[place]
                        for name, place in places.items()
                        if place is not None
                    },
                    {
                        name: tuple(turn.text[start:end] for start, end in spans)
                        for name, spans in turn.rationales.items()
                    },
                )


def corpus_part(name: str, data_dir: Path, fold: int | None) -> tuple[list[Item], list[Item]]:
    """Items to code and items for examples: a fold's test and training part, or the held-out tenth.

    The folds are those of every other method (`models.data.split`); the tenth is the one that the
    shipped bundles left out. Conversations that never train are distributed over the folds.

    Raises:
        MissingCorpusError: a file of the corpus is missing.
    """
    conversations = list(LOADERS[name](data_dir))
    if fold is None:
        parts = split(conversations, SEED)
        tested, training = parts["test"], parts["train"]
    else:
        tested = held_out(conversations, fold, FOLDS, SEED)
        own = {id(item) for item in tested}
        training = [c for c in conversations if id(c) not in own and c.part != "test"]
    return list(of_corpus(tested)), list(of_corpus(training))


def of_events(file: Path) -> tuple[list[Item], int]:
    """The turns of a file of events (JSON lines as in docs/events.md), and withheld sessions.

    A session is withheld if the file has a statement against consent for it, wherever it stands.

    Raises:
        ItemsError: the file cannot be read, or a line is no event.
    """
    sessions: dict[str, dict[int, Utterance]] = {}
    withheld: set[str] = set()
    try:
        with file.open("rb") as lines:
            for number, raw in enumerate(lines, 1):
                if not raw.strip():
                    continue
                try:
                    event = decode(raw.strip())
                except ContractError as problem:
                    raise ItemsError(f"{file}, line {number}: {problem.detail}") from None
                if isinstance(event, Turn) and not event.is_aside:
                    said = Utterance(event.speaker_role.value, event.text)
                    sessions.setdefault(event.session_id, {}).setdefault(event.seq, said)
                if (isinstance(event, Turn) and event.consent is False) or (
                    isinstance(event, Consent) and event.status is not ConsentStatus.GIVEN
                ):
                    withheld.add(event.session_id)
    except OSError as problem:
        raise ItemsError(f"{file} cannot be read: {problem.strerror}") from None
    found = [
        item
        for session, turns in sessions.items()
        if session not in withheld
        for item in of_conversation(session, [(str(seq), turns[seq]) for seq in sorted(turns)])
    ]
    return found, len(withheld & sessions.keys())
