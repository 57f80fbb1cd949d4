"""`python -m models.evaluate.miti --bundle FOLDER`: evaluate MITI counts against human codes.

AnnoMI's annotators gave each counsellor turn at most one question, one reflection and one kind of
input, as the MITI does for a volley. Their codes, counted by the same rule, are the ground truth of
a session's summary (`stream_app.core.measures.miti`). Several counting methods are compared: whole
turns or sentences, probabilities or the most probable labels.

Writes docs/evaluation/miti.json, one entry per bundle.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from models.data import annomi
from models.data.corpora import Conversation, MissingCorpusError, Turn, resolve_data_dir
from models.data.split import key_of, part_of
from models.evaluate.resampling import interval, spearman
from models.labels import COUNSELLOR, HEADS_BY_NAME
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Expressed, MitiSummary, Stage, TurnScore
from stream_app.core.measures.miti import FEWEST_VOLLEYS, THRESHOLDS, MitiCounts, miti_summary
from stream_app.core.measures.window import Neighbour, ScoringRequest, WindowTurn
from stream_app.core.session.ports import Encoding, Scorer
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.rationale import sentences
from stream_app.inference.scorer import OnnxScorer

Floats = NDArray[np.float64]
SEED = 17
HEADS = ("question", "reflection", "input")
AT_ONCE = 256
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
CODES = (
    *("question", "open_question", "closed_question", "simple_reflection", "complex_reflection"),
    *("giving_information", "seeking_collaboration", "persuade_with_permission", "persuade"),
)
SHIPPED = "turns, probabilities"
PROTOCOL = {
    "truth": "shares of AnnoMI's annotators, counted by the rule of the summary",
    "error": "mean absolute error over sessions; of a constant: the median of people's values",
    "standing": f"sessions of {FEWEST_VOLLEYS} volleys or more that both put below the manual's "
    "fair threshold, between fair and good, or above; of a constant: the most frequent standing",
    "more error": "mean of the differences between two ways, with sessions resampled",
    "seen": "most sessions trained the bundle; held out are those of the split's tenth",
}


@dataclass(frozen=True)
class Read:
    """A counsellor turn with its human codes and the bundle's scores.

    `follows`: the previous turn is the counsellor's, too. `sentences`: text and scores of each.
    """

    follows: bool
    human: Expressed
    turn: Expressed
    sentences: tuple[tuple[str, Expressed], ...]


Parts = Callable[[Read], Sequence[Expressed]]


def most_probable(expressed: Expressed) -> Expressed:
    """Move each head's probability to its most probable label."""
    return Expressed(
        {
            head: {max(p, key=p.__getitem__): 1.0}
            for head in HEADS
            if (p := expressed.distribution(head)) is not None
        }
    )


def by_question_marks(read: Read) -> list[Expressed]:
    """The turn, and its question again for each further sentence that ends in a question mark."""
    asked = sum(text.rstrip("\"'”’)] ").endswith("?") for text, _ in read.sentences)
    again = Expressed(question=read.turn.distribution("question") or {}, reflection={"none": 1.0})
    return [read.turn, *[again] * (asked - 1)]


WAYS: Mapping[str, tuple[Parts, bool]] = {
    SHIPPED: (lambda read: [read.turn], False),
    "turns, most probable labels": (lambda read: [most_probable(read.turn)], False),
    "sentences, probabilities, one of a kind in a volley": (
        lambda read: [found for _, found in read.sentences],
        False,
    ),
    "sentences, probabilities, each counted": (
        lambda read: [found for _, found in read.sentences],
        True,
    ),
    "sentences, most probable labels, one of a kind in a volley": (
        lambda read: [most_probable(found) for _, found in read.sentences],
        False,
    ),
    "turns, probabilities, a question for each question mark": (by_question_marks, True),
}
"""By method: the parts of a turn to count, and whether each counts even within a volley."""


def sentences_of(text: str) -> list[str]:
    """Split into sentences, as rationales are.

    >>> sentences_of("Okay. How was it? Tell me")
    ['Okay.', 'How was it?', 'Tell me']
    """
    words = [found.span() for found in re.finditer(r"\S+", text)]
    numbered = zip(sentences(words, text).tolist(), words, strict=True)
    parts = [[span for _, span in own] for _, own in groupby(numbered, key=lambda pair: pair[0])]
    return [text[own[0][0] : own[-1][1]] for own in parts]


def read_session(scorer: Scorer, conversation: Conversation) -> list[Read]:
    """The coded counsellor turns of a session, with their final scores.

    A sentence is scored in place of its turn, with the turn's neighbours.
    """
    turns = conversation.turns
    coded = [
        i for i, turn in enumerate(turns) if turn.role == COUNSELLOR and {*HEADS} <= {*turn.labels}
    ]
    parts = {i: sentences_of(turns[i].text) for i in coded}
    texts = list({turn.text for turn in turns} | {text for own in parts.values() for text in own})
    known = dict(zip(texts, scorer.encode(texts), strict=True))
    encoded = [_encoded(i, turn.role, turn.text, known) for i, turn in enumerate(turns)]
    before, after = scorer.window
    requests = []
    for i in coded:
        context = [
            Neighbour(encoded[j], j - i)
            for j in range(max(0, i - before), min(len(turns), i + after + 1))
            if j != i
        ]
        alone = [_encoded(i, COUNSELLOR, text, known) for text in parts[i]]
        requests += [ScoringRequest(turn, Stage.FINAL, context) for turn in (encoded[i], *alone)]
    found = iter(
        each.expressed
        for start in range(0, len(requests), AT_ONCE)
        for each in scorer.score(requests[start : start + AT_ONCE])
    )
    return [
        Read(
            follows=i > 0 and turns[i - 1].role == COUNSELLOR,
            human=coded_by_people(turns[i]),
            turn=next(found),
            sentences=tuple((text, next(found)) for text in parts[i]),
        )
        for i in coded
    ]


def _encoded(seq: int, role: int, text: str, known: Mapping[str, Encoding]) -> WindowTurn:
    return WindowTurn(
        seq=seq,
        role=Role.COUNSELLOR if role == COUNSELLOR else Role.CLIENT,
        occurred_at=LONG_AGO,
        digest=0,
        words=len(text.split()),
        vectors=known[text].vectors,
        rationales={},
    )


def coded_by_people(turn: Turn) -> Expressed:
    """The annotators' votes as a head's probabilities."""
    return Expressed(
        {
            head: dict(zip(HEADS_BY_NAME[head].labels, turn.labels[head], strict=True))
            for head in HEADS
        }
    )


def summarised(reads: Sequence[Read], parts: Parts, *, apart: bool) -> MitiSummary:
    """Summarise the session; `apart` counts every part as a separate volley."""
    counts, seq = MitiCounts(), 0
    for read in reads:
        for place, expressed in enumerate(parts(read)):
            seq += 1 if not apart and (place or read.follows) else 2
            counts.observe(_score(seq, expressed), 0)
    found = miti_summary(counts)
    if found is None:
        raise ValueError("a session without a coded counsellor turn")
    return found


def _score(seq: int, expressed: Expressed) -> TurnScore:
    return TurnScore(
        session_id="",
        seq=seq,
        stage=Stage.PROVISIONAL,
        bundle="",
        role=Role.COUNSELLOR,
        occurred_at=LONG_AGO,
        late=False,
        truncated=False,
        expressed=expressed,
        perceived={},
        client={},
        confidence=0.0,
        abstained=[],
    )


def report(
    sessions: Sequence[Sequence[Read]], held_out: Sequence[bool], resamples: int | None = None
) -> dict[str, Any]:
    """All figures of one bundle, on all sessions and on those held out from its training."""
    human = [summarised(reads, lambda read: [read.human], apart=False) for reads in sessions]
    found = {
        name: [summarised(reads, parts, apart=apart) for reads in sessions]
        for name, (parts, apart) in WAYS.items()
    }

    def figures(chosen: list[int]) -> dict[str, Any]:
        truth = [human[i] for i in chosen]
        ours = {name: [summaries[i] for i in chosen] for name, summaries in found.items()}
        return {
            "sessions": len(chosen),
            "constant": _constant(truth),
            "ways": {
                name: {
                    measure: compared(truth, own, measure, resamples)
                    | {"more_error": more_error(truth, own, ours[SHIPPED], measure, resamples)}
                    for measure in THRESHOLDS
                }
                for name, own in ours.items()
            },
            "codes": {code: counted(truth, ours[SHIPPED], code, resamples) for code in CODES},
        }

    everything = list(range(len(sessions)))
    unseen = [i for i in everything if held_out[i]]
    return {"all": figures(everything), "held_out": figures(unseen) if unseen else None}


def compared(
    human: Sequence[MitiSummary], ours: Sequence[MitiSummary], measure: str, resamples: int | None
) -> dict[str, Any]:
    """Errors, rank correlation and standings of one measure, where both sides have it."""
    pairs = [
        (one.measures[measure], other.measures[measure])
        for one, other in zip(human, ours, strict=True)
    ]
    values = [
        (one.value, other.value)
        for one, other in pairs
        if one.value is not None and other.value is not None
    ]
    x = np.array(values, float).reshape(-1, 2)
    standings = [
        one.standing is other.standing
        for one, other in pairs
        if one.standing is not None and other.standing is not None
    ]
    return {
        "sessions": len(x),
        "error": _mean(abs(x[:, 0] - x[:, 1])),
        "median_error": float(np.median(abs(x[:, 0] - x[:, 1]))) if len(x) else None,
        "spearman": _ranked(x, resamples),
        "standings": len(standings),
        "same_standing": _mean(np.array(standings, float)),
    }


def more_error(
    human: Sequence[MitiSummary],
    ours: Sequence[MitiSummary],
    shipped: Sequence[MitiSummary],
    measure: str,
    resamples: int | None,
) -> dict[str, Any]:
    """Mean error of a method minus that of the shipped one, on sessions where both are defined."""
    rows = [
        [summary.measures[measure].value for summary in each]
        for each in zip(human, ours, shipped, strict=True)
    ]
    x = np.array([row for row in rows if None not in row], float).reshape(-1, 3)
    if not len(x):
        return {"value": None, "low": None, "high": None}
    gap = abs(x[:, 1] - x[:, 0]) - abs(x[:, 2] - x[:, 0])
    return interval(np.arange(len(gap)), lambda rows: float(gap[rows].mean()), resamples)


def counted(
    human: Sequence[MitiSummary], ours: Sequence[MitiSummary], code: str, resamples: int | None
) -> dict[str, Any]:
    """Human codes per session, and the error of the expected number."""
    x = np.array(
        [
            (one.counts[code], other.counts[code])
            for one, other in zip(human, ours, strict=True)
            if code in other.counts
        ],
        float,
    ).reshape(-1, 2)
    return {
        "mean": _mean(x[:, 0]),
        "ours": _mean(x[:, 1]),
        "error": _mean(abs(x[:, 0] - x[:, 1])),
        "error_of_a_constant": _off(x[:, 0]),
        "spearman": _ranked(x, resamples),
    }


def _constant(human: Sequence[MitiSummary]) -> dict[str, Any]:
    """Figures of the best constant prediction."""
    found = {}
    for measure in THRESHOLDS:
        given = [summary.measures[measure] for summary in human]
        values = np.array([each.value for each in given if each.value is not None], float)
        standings = [each.standing for each in given if each.standing is not None]
        most = max((standings.count(each) for each in standings), default=0)
        found[measure] = {
            "error": _off(values),
            "same_standing": most / len(standings) if standings else None,
        }
    return found


def _off(values: Floats) -> float | None:
    return _mean(abs(values - np.median(values))) if len(values) else None


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _ranked(x: Floats, resamples: int | None) -> dict[str, Any]:
    """Spearman correlation of two columns with its interval; None if undefined."""
    if len(x) < 3 or np.isnan(spearman(x[:, 0], x[:, 1])):
        return {"value": None, "low": None, "high": None}
    rows = np.arange(len(x))
    return interval(rows, lambda chosen: spearman(x[chosen, 0], x[chosen, 1]), resamples)


def measure(
    scorer: Scorer, conversations: Sequence[Conversation], resamples: int | None = None
) -> dict[str, Any]:
    """Figures of one scorer on coded sessions."""
    coded = [
        (reads, part_of(key_of(each), SEED) == "test")
        for each in conversations
        if (reads := read_session(scorer, each))
    ]
    return report([reads for reads, _ in coded], [unseen for _, unseen in coded], resamples)


def store(out: Path, name: str, entry: dict[str, Any]) -> None:
    """Store a bundle's entry in the file of all bundles."""
    known = json.loads(out.read_text(encoding="utf-8")) if out.is_file() else {}
    entries = {**known.get("bundles", {}), name: entry}
    out.parent.mkdir(parents=True, exist_ok=True)
    content = {"protocol": PROTOCOL, "shipped": SHIPPED, "bundles": entries}
    out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(
    bundle: Annotated[Path, typer.Option(help="Bundle folder.")],
    out: Annotated[Path, typer.Option(help="File with the entries of all bundles.")] = Path(
        "docs/evaluation/miti.json"
    ),
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    threads: int = 1,
) -> None:
    """Evaluate one bundle and print its figures."""
    from models.pages.miti import miti_section  # noqa: PLC0415 (tests need no page)
    from models.pages.report import rounded  # noqa: PLC0415

    try:
        conversations = list(annomi.load(resolve_data_dir(data_dir)))
    except MissingCorpusError as problem:
        raise SystemExit(f"error: {problem}") from problem
    scorer = OnnxScorer(bundles.load(bundle), threads=threads)
    store(out, scorer.bundle_id, rounded(measure(scorer, conversations), 4))
    print(miti_section(json.loads(out.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    typer.run(main)
