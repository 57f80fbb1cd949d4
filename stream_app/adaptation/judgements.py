"""Judged turns as the arrays of each head."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stream_app.adaptation.fitting import Floats, HeadData, Ints
from stream_app.contracts.scores import SCALE
from stream_app.core.measures.heads import Dimension, HeadKind
from stream_app.inference.bundles.adaptations import inputs_of
from stream_app.inference.bundles.bundle import HeadSpec
from stream_app.store.work.judged_turns import Judged, JudgedTurn, TurnKey


class Judgements(NamedTuple):
    """Judged turns of one head; arrays as in ``HeadData``."""

    turns: list[JudgedTurn]
    target: Floats
    group: Ints
    disputed: npt.NDArray[np.bool_]
    blind: npt.NDArray[np.bool_]


def of_turns(judged: Judged, head: HeadSpec, turns: Sequence[JudgedTurn]) -> Judgements | None:
    """Select the turns that were judged for this head, with its labels; None without any."""
    if head.dimension is Dimension.OUTCOME:
        return None
    own = [
        turn
        for turn in turns
        if turn.head == head.name and 0 <= min(turn.values) <= max(turn.values) < len(head.labels)
    ]
    if not own:
        return None
    names = {name: place for place, name in enumerate(sorted(set(judged.counsellors.values())))}
    return Judgements(
        own,
        target=np.array([_shares(turn, len(head.labels)) for turn in own]),
        group=np.array(
            [names.get(judged.counsellors.get(turn.session_id, ""), len(names)) for turn in own],
            dtype=np.int64,
        ),
        disputed=np.array([turn.disputed for turn in own]),
        blind=np.array([turn.blind for turn in own]),
    )


def of_head(judged: Judged, head: HeadSpec, heads: Sequence[HeadSpec]) -> HeadData | None:
    """The judged turns of one head; None without any.

    A turn is left out if the bundle did not compute one of the inputs for it, or if the raters'
    values are none of the head's labels.
    """
    inputs = inputs_of(head, heads)
    known: dict[TurnKey, dict[str, list[float]]] = {}
    for key, score in judged.scores.items():
        found = {one.name: probabilities(one, score) for one in inputs}
        complete = {name: values for name, values in found.items() if values is not None}
        if len(complete) == len(inputs):
            known[key] = complete
    scored = [turn for turn in judged.turns if (turn.session_id, turn.seq) in known]
    own = of_turns(judged, head, scored)
    if own is None:
        return None
    rows = [known[turn.session_id, turn.seq] for turn in own.turns]
    return HeadData(
        head=head.name,
        labels=tuple(head.labels),
        ordered=head.kind is HeadKind.LEVEL,
        offsets=tuple(head.offsets),
        probabilities={one.name: np.array([row[one.name] for row in rows]) for one in inputs},
        target=own.target,
        weight=np.ones(len(rows)),
        group=own.group,
        disputed=own.disputed,
        blind=own.blind,
    )


def probabilities(head: HeadSpec, score: Mapping[str, Any]) -> list[float] | None:
    """A head's probabilities [labels] in a stored score; None if it has none."""
    if head.dimension is Dimension.PERCEIVED:
        p = score["perceived"].get(head.name)
        return None if p is None else [1.0 - p, p]
    part = score["expressed"].get(head.name, score["client"].get(head.name))
    if not isinstance(part, Mapping):
        return None
    found = part.get("probabilities") or [part.get(label) for label in head.labels]
    if len(found) != len(head.labels) or None in found:
        return None
    values = [float(value) for value in found]
    return values if abs(sum(values) - 1.0) <= len(values) / SCALE else None  # each is rounded


def _shares(turn: JudgedTurn, labels: int) -> Floats:
    return np.asarray(np.bincount(turn.values, minlength=labels) / len(turn.values))
