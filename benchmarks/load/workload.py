"""The benchmark's turns: real lengths, text of the shipped sample sessions.

The same arguments give the same turns on every machine. Lengths are drawn from a low-discrepancy
sequence instead of at random, so that a short run has the mean of a long one.
"""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from math import sqrt

import msgspec
from msgspec import Struct

from benchmarks import lengths
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.tokenizer import TextTokenizer
from stream_app.recordings.event_files import sample_sessions

GOLDEN = (sqrt(5) - 1) / 2
ROLES = ("client", "counsellor")
FILLER = "so"
"""A one-token word, used when the text's next word is too long."""
TEAMS = 20
TURNS_A_PLACE = 40
"""Turns per open session in a run, about the length of a whole session."""


class Turn(Struct, frozen=True):
    """One turn without time and run name; ``tokens`` includes both special tokens."""

    session: int
    seq: int
    role: str
    text: str
    tokens: int


class Texts:
    """Sample text cut to a length in tokens of the default bundle's tokenizer."""

    def __init__(self) -> None:
        bundle = bundles.load()
        tokenizer = TextTokenizer(bundle.file(bundle.manifest.tokenizer.file), 1 << 20)
        self._words: dict[str, list[str]] = {}
        self._sizes: dict[str, list[int]] = {}
        for role, text in _spoken().items():
            words = text.split()
            self._words[role] = words
            self._sizes[role] = [len(found.ids) - 2 for found in tokenizer.tokenize(words)]

    def cut(self, role: str, tokens: int, chance: random.Random) -> str:
        """Consecutive words with the given number of tokens, including both special tokens."""
        words, sizes = self._words[role], self._sizes[role]
        place = chance.randrange(len(words))
        found: list[str] = []
        missing = max(1, tokens - 2)
        while missing > 0:
            fits = sizes[place] <= missing
            found.append(words[place] if fits else FILLER)
            missing -= sizes[place] if fits else 1
            place = (place + 1) % len(words)
        return " ".join(found)


@cache
def texts() -> Texts:
    """The process-wide instance."""
    return Texts()


def turns(count: int, sessions: int | None = None, seed: int = 1) -> list[Turn]:
    """Turns of concurrent sessions, in the order in which they are spoken.

    Args:
        count: number of turns.
        sessions: number of sessions open at a time; by default one per 40 turns, at least 4.
        seed: selects the turns.
    """
    places = sessions if sessions is not None else max(4, count // TURNS_A_PLACE)
    return list(islice(_endless(places, seed), count))


def fixed(count: int, tokens: int, sessions: int, seed: int = 1) -> list[Turn]:
    """Turns of a fixed number of tokens."""
    chance = random.Random(seed)
    role = [ROLES[i // sessions % 2] for i in range(count)]
    return [
        Turn(i % sessions, i // sessions, role[i], texts().cut(role[i], tokens, chance), tokens)
        for i in range(count)
    ]


def event(turn: Turn, run: str, at: float, first_seq: int = 0) -> bytes:
    """Encode a turn for the wire, spoken at ``at`` (seconds since 1970)."""
    session_id = session_name(run, turn.session)
    return msgspec.json.encode(
        {
            "type": "turn",
            "session_id": session_id,
            "seq": first_seq + turn.seq,
            "speaker_id": f"{session_id}/{turn.role}",
            "role": turn.role,
            "text": turn.text,
            "occurred_at": datetime.fromtimestamp(at, UTC).isoformat(),
            "domain": "peer-support",
            "channel": "chat",
            "team": team(turn.session),
            "lang": "en",
            "consent": True,
        }
    )


def team(session: int) -> str:
    """The team of a session."""
    return f"team-{session % TEAMS}"


def session_name(run: str, session: int) -> str:
    """The id of a session in one run."""
    return f"{run}-{session}"


def _endless(places: int, seed: int) -> Iterator[Turn]:
    chance = random.Random(seed)
    corpora = list(lengths.load().values())
    started = 0
    spoken = dict.fromkeys(ROLES, 0)
    left: list[int] = []
    current: list[tuple[int, int]] = []

    def start() -> tuple[int, int]:
        nonlocal started
        corpus = corpora[started % len(corpora)]
        left_now = corpus.session_turns.at(_even(started, seed))
        started += 1
        return started - 1, left_now

    for _ in range(places):
        session, length = start()
        current.append((session, 0))
        left.append(length)
    while True:
        for place in chance.sample(range(places), places):
            session, seq = current[place]
            role = ROLES[(session + seq) % 2]
            lengths_of = corpora[session % len(corpora)].tokens[role]
            tokens = max(3, lengths_of.at(_even(spoken[role], seed)))
            spoken[role] += 1
            yield Turn(session, seq, role, texts().cut(role, tokens, chance), tokens)
            current[place] = (session, seq + 1)
            left[place] -= 1
            if not left[place]:
                session, left[place] = start()
                current[place] = (session, 0)


def _even(number: int, seed: int) -> float:
    """Low-discrepancy (golden ratio) sequence on [0, 1): any prefix is evenly spread."""
    return (number * GOLDEN + seed * 0.754877666) % 1.0


def _spoken() -> dict[str, str]:
    parts: dict[str, list[str]] = {role: [] for role in ROLES}
    for path in sample_sessions():
        for line in path.read_text("utf-8").splitlines():
            item = json.loads(line) if line else {}
            if item.get("type") == "turn" and item.get("role") in parts:
                parts[item["role"]].append(item["text"])
    return {role: " ".join(found) for role, found in parts.items()}
