"""Sessions of known empathy: composed of rated answers, or degraded from real ones.

*Composed*: six exchanges of EPITOME, each a seeker post and a response with three human-labelled
levels. A session leans towards more or less empathic answers (see `LEAN`), as counsellors do; its
ground truth is the mean labelled total. *Degraded*: a real session in which counsellor turns from
an onset onwards are replaced by answers labelled as showing no mechanism, by answers of a task
dialogue, or by advice; the control replaces the same turns by strongly empathic answers of similar
length. *Misplaced*: two sessions of strongly empathic EPITOME answers that have swapped their
answers; the control is the same two sessions with their own, *fitting* answers, so that labels and
lengths are the same on both sides. *Lengths*: sessions of three, six and twelve exchanges, all of
answers without a mechanism, all of strongly empathic ones, or of any.
*Real*: unchanged sessions, for the reference distributions.
*Rated*: the conversations of EmpatheticExchanges, with human ratings of empathy.

All parts of a session come from one fold, so that this fold's model has seen none of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from models.data import empathetic_exchanges, epitome, esconv
from models.data.corpora import Conversation
from models.data.rated_sessions import SERVICE, RatedSession, RatedTurn, load_sessions
from models.data.split import fold_of, key_of, part_of
from models.labels import CLIENT, COUNSELLOR, RATIONALE_ORDER, STRATEGIES
from models.model.batches import seeded_random

Kind = Literal[
    "real",
    "rated",
    "composed",
    "untouched",
    "none",
    "task",
    "advice",
    "strong",
    "misplaced",
    "fitting",
    "lengths",
]
Onset = Literal["turn 3", "half"]
Share = Literal["every", "every second"]

EXCHANGES = 6
LEAN = 1.2
"""A composed session draws its answers with weights exp(lean * total), lean uniform in +-LEAN."""
COMPOSED_A_FOLD = 240
LENGTHS = (3, 6, 12)
"""Exchanges of the sessions that differ in length."""
OF_EACH_LENGTH_A_FOLD = 20
GROUPS: dict[str, Callable[[int], bool]] = {
    "no mechanism": lambda total: total == 0,
    "any": lambda _: True,
    "strong": lambda total: total >= STRONG_TOTAL,
}
"""Which labelled totals the answers of these sessions have."""
CHATS_A_FOLD = 50
CONTROLS = 30
"""A control is drawn from this many strongly empathic answers, those nearest in length."""
FEWEST_COUNSELLOR_TURNS = 8
STRONG_TOTAL = 3
"""Answers with at least this labelled total are strongly empathic: an eighth of EPITOME."""
CHANGES: tuple[Kind, ...] = ("none", "task", "advice", "strong")
SWAPS_A_FOLD = 40
"""Pairs of sessions that swap their strongly empathic answers."""
KINDS_SWAPPED: tuple[Kind, ...] = ("misplaced", "fitting")
DOMAINS_COMPOSED = ("peer-support", "counselling")
SERVICE_A_FOLD = 120
"""Service dialogues per fold in the reference."""
DOMAINS: dict[str, str] = {
    "esconv": "peer-support",
    "esconv_failed": "peer-support",
    "annomi": "counselling",
    **dict.fromkeys(SERVICE, "customer-service"),
}


@dataclass(frozen=True)
class Answer:
    """A text that can serve as a counsellor turn; `total` is its labelled total, if any."""

    text: str
    total: int | None = None

    @property
    def words(self) -> int:
        """Length in words."""
        return len(self.text.split())


@dataclass(frozen=True)
class Known:
    """Ground truth of a session of the benchmark.

    `origin` names the session that was changed, the two that swapped their answers, or the group
    that the answers of a session of some length are from; `onset` is the index of the first changed
    counsellor turn among the counsellor turns; `totals` are the labelled totals of the answers of a
    session made of EPITOME, or the 1-5 ratings of a rated session's.
    """

    kind: Kind
    domain: str
    fold: int
    origin: str = ""
    onset: int | None = None
    share: Share = "every"
    totals: tuple[int, ...] = ()


@dataclass
class BenchmarkSessions:
    """Sessions of the benchmark with their ground truth, as parallel lists."""

    sessions: list[RatedSession] = field(default_factory=list)
    known: list[Known] = field(default_factory=list)

    def add(self, session: RatedSession, known: Known) -> None:
        """Add one session."""
        self.sessions.append(session)
        self.known.append(known)

    def join(self, other: BenchmarkSessions) -> None:
        """Append the sessions of another collection."""
        self.sessions += other.sessions
        self.known += other.known


@dataclass
class Parts:
    """Source material of one fold's sessions."""

    pairs: list[tuple[str, Answer]]
    heard: list[RatedSession]
    chats: list[RatedSession]
    counselling: list[RatedSession]
    task: list[Answer]
    advice: list[Answer]

    @property
    def none(self) -> list[Answer]:
        """Answers labelled as showing none of the three mechanisms."""
        return [answer for _, answer in self.pairs if answer.total == 0]

    @property
    def strong(self) -> list[Answer]:
        """Answers labelled as strongly empathic."""
        return [answer for _, answer in self.pairs if (answer.total or 0) >= STRONG_TOTAL]


def total_of(response: Conversation) -> int:
    """Labelled total 0-6 of an EPITOME pair."""
    labels = response.turns[-1].labels
    return sum(labels[head].index(1.0) for head in RATIONALE_ORDER)


Own = Callable[[str], bool]
"""Tells from a conversation's key whether it may be used."""


def of_fold(fold: int, folds: int, seed: int) -> Own:
    """The conversations that the model of one fold did not train on."""
    return lambda key: fold_of(key, seed, folds) == fold


def of_held_out_tenth(seed: int) -> Own:
    """The conversations that a shipped model did not train on."""
    return lambda key: part_of(key, seed) == "test"


def parts_of(data_dir: Path, own: Own) -> Parts:
    """Collect the source material of one fold."""
    pairs = [
        (item.turns[0].text, Answer(item.turns[1].text, total_of(item)))
        for item in epitome.load(data_dir)
        if own(key_of(item))
    ]
    heard = [session for session in load_sessions(data_dir) if own(session.key)]
    suggestion = STRATEGIES.index("providing_suggestions")
    advice = [
        Answer(turn.text)
        for chat in esconv.load(data_dir)
        if own(key_of(chat))
        for turn in chat.turns
        if turn.role == COUNSELLOR and turn.labels["strategy"][suggestion] == 1.0
    ]
    return Parts(
        pairs,
        heard,
        [s for s in heard if s.source == "esconv" and _long(s)],
        [s for s in heard if s.source == "annomi" and s.quality == "high" and _long(s)],
        [
            Answer(turn.text)
            for session in heard
            if session.source in SERVICE
            for turn in session.turns
            if turn.role == COUNSELLOR
        ],
        advice,
    )


def _long(session: RatedSession) -> bool:
    return len(session.positions[COUNSELLOR]) >= FEWEST_COUNSELLOR_TURNS


def real(parts: Parts, fold: int, chance: random.Random) -> BenchmarkSessions:
    """The fold's unchanged sessions, with a sample of the service corpora."""
    service = [session for session in parts.heard if session.source in SERVICE]
    chosen = [session for session in parts.heard if session.source not in SERVICE]
    chosen += chance.sample(service, min(SERVICE_A_FOLD, len(service)))
    made = BenchmarkSessions()
    for session in chosen:
        made.add(session, Known("real", DOMAINS[session.source], fold, session.key))
    return made


def rated(data_dir: Path, own: Own, fold: int) -> BenchmarkSessions:
    """The fold's conversations of EmpatheticExchanges."""
    made = BenchmarkSessions()
    for item in empathetic_exchanges.load(data_dir):
        if own(key_of(item)):
            ratings = tuple(
                round(1 + 4 * turn.labels[empathetic_exchanges.HEAD][1])
                for turn in item.turns
                if turn.labels
            )
            turns = [RatedTurn(turn.role, turn.text) for turn in item.turns]
            made.add(
                RatedSession("esconv", key_of(item), turns),
                Known("rated", "peer-support", fold, totals=ratings),
            )
    return made


def composed(parts: Parts, fold: int, chance: random.Random) -> BenchmarkSessions:
    """Compose sessions of six exchanges, each in both domains."""
    made = BenchmarkSessions()
    totals = np.array([answer.total or 0 for _, answer in parts.pairs])
    for number in range(COMPOSED_A_FOLD):
        weight = np.exp(chance.uniform(-LEAN, LEAN) * totals)
        drawn = np.random.default_rng(chance.getrandbits(32)).choice(
            len(totals), EXCHANGES, replace=False, p=weight / weight.sum()
        )
        pairs = [parts.pairs[place] for place in drawn]
        _add_in_both_domains(made, pairs, Known("composed", "", fold), f"{fold}:{number}")
    return made


def of_lengths(parts: Parts, fold: int, chance: random.Random) -> BenchmarkSessions:
    """Sessions of three, six and twelve exchanges with answers of one group, in both domains."""
    made = BenchmarkSessions()
    for group, belongs in GROUPS.items():
        pairs = [pair for pair in parts.pairs if belongs(pair[1].total or 0)]
        for length in LENGTHS:
            if length > len(pairs):
                continue
            for number in range(OF_EACH_LENGTH_A_FOLD):
                known = Known("lengths", "", fold, group)
                key = f"{fold}:{group}:{length}:{number}"
                _add_in_both_domains(made, chance.sample(pairs, length), known, key)
    return made


def _add_in_both_domains(
    made: BenchmarkSessions, pairs: Sequence[tuple[str, Answer]], known: Known, key: str
) -> None:
    turns = [
        turn
        for post, answer in pairs
        for turn in (RatedTurn(CLIENT, post), RatedTurn(COUNSELLOR, answer.text))
    ]
    totals = tuple(answer.total or 0 for _, answer in pairs)
    for domain in DOMAINS_COMPOSED:
        made.add(
            RatedSession("esconv", f"{known.kind}:{key}:{domain}", turns),
            replace(known, domain=domain, totals=totals),
        )


def swapped(parts: Parts, fold: int, chance: random.Random) -> BenchmarkSessions:
    """Sessions of strongly empathic answers, with their own posts and with another session's.

    Twelve pairs of post and answer make two sessions of six. Each two answers nearest in length
    are split between the sessions, and swapped, so that both kinds consist of the same answers.
    """
    strong = {post: answer for post, answer in parts.pairs if (answer.total or 0) >= STRONG_TOTAL}
    made = BenchmarkSessions()
    if len(strong) < 2 * EXCHANGES:
        return made
    for number in range(SWAPS_A_FOLD):
        drawn = chance.sample(sorted(strong.items(), key=lambda pair: pair[0]), 2 * EXCHANGES)
        drawn.sort(key=lambda pair: pair[1].words)
        couples = [chance.sample(drawn[i : i + 2], 2) for i in range(0, len(drawn), 2)]
        chance.shuffle(couples)
        for side in (0, 1):
            for kind in KINDS_SWAPPED:
                given = side if kind == "fitting" else 1 - side
                answers = [couple[given][1] for couple in couples]
                turns = [
                    turn
                    for couple, answer in zip(couples, answers, strict=True)
                    for turn in (
                        RatedTurn(CLIENT, couple[side][0]),
                        RatedTurn(COUNSELLOR, answer.text),
                    )
                ]
                totals = tuple(answer.total or 0 for answer in answers)
                known = Known(kind, "", fold, f"swap:{fold}:{number}", totals=totals)
                for domain in DOMAINS_COMPOSED:
                    key = f"{kind}:{fold}:{number}:{side}:{domain}"
                    made.add(RatedSession("esconv", key, turns), replace(known, domain=domain))
    return made


def degraded(parts: Parts, fold: int, chance: random.Random) -> BenchmarkSessions:
    """Real sessions as they are and changed in every way, with their controls."""
    made = BenchmarkSessions()
    chosen = (
        *(("peer-support", s) for s in chance.sample(parts.chats, len(parts.chats))[:CHATS_A_FOLD]),
        *(("counselling", session) for session in parts.counselling),
    )
    for domain, session in chosen:
        made.add(_named(session, "untouched"), Known("untouched", domain, fold, session.key))
        spoken = session.positions[COUNSELLOR]
        others: list[tuple[Onset, Share]] = [("turn 3", "every"), ("half", "every second")]
        ways: list[tuple[Onset, Share]] = [("half", "every"), chance.choice(others)]
        for onset, share in ways:
            first = 2 if onset == "turn 3" else len(spoken) // 2
            places = spoken[first :: 1 if share == "every" else 2]
            for kind in CHANGES:
                changed = _changed(session, places, kind, parts, chance)
                name = f"{kind}:{onset}:{share}"
                made.add(
                    RatedSession(session.source, f"{session.key}:{name}", changed),
                    Known(kind, domain, fold, session.key, first, share),
                )
    return made


def _named(session: RatedSession, name: str) -> RatedSession:
    turns = [RatedTurn(turn.role, turn.text) for turn in session.turns]
    return RatedSession(session.source, f"{session.key}:{name}", turns)


def _changed(
    session: RatedSession,
    places: Sequence[int],
    kind: Kind,
    parts: Parts,
    chance: random.Random,
) -> list[RatedTurn]:
    turns = [RatedTurn(turn.role, turn.text) for turn in session.turns]
    pool = {
        "none": parts.none,
        "task": parts.task,
        "advice": parts.advice,
        "strong": parts.strong,
    }[kind]
    for place in places:
        # The control matches the length of the turn it replaces; all other replacements match the
        # control.
        words = len(session.turns[place].text.split())
        control = _alike(parts.strong, words, chance, CONTROLS)
        given = control if kind == "strong" else _alike(pool, control.words, chance)
        turns[place] = RatedTurn(COUNSELLOR, given.text)
    return turns


def _alike(pool: Sequence[Answer], words: int, chance: random.Random, among: int = 12) -> Answer:
    """Draw one of the answers nearest in length."""
    nearest = sorted(pool, key=lambda answer: abs(answer.words - words))[:among]
    return chance.choice(nearest)


def build_benchmark(data_dir: Path, own: Own, fold: int, seed: int) -> BenchmarkSessions:
    """All sessions of the benchmark that are made of a fold's own conversations."""
    parts = parts_of(data_dir, own)
    made = BenchmarkSessions()
    for part in (
        real(parts, fold, seeded_random(seed, fold, "real")),
        rated(data_dir, own, fold),
        composed(parts, fold, seeded_random(seed, fold, "composed")),
        of_lengths(parts, fold, seeded_random(seed, fold, "lengths")),
        swapped(parts, fold, seeded_random(seed, fold, "swapped")),
        degraded(parts, fold, seeded_random(seed, fold, "degraded")),
    ):
        made.join(part)
    return made
