"""Judged turns as the arrays of each head."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from stream_app.adaptation.fitting import Floats, HeadData
from stream_app.core.heads import Dimension, HeadKind
from stream_app.inference.adaptations import inputs_of
from stream_app.inference.bundle import HeadSpec
from stream_app.store.queries.judged_turns import Judged, JudgedTurn

LARGEST_SUM_ERROR: Final = 1e-3


def of_head(judged: Judged, head: HeadSpec, heads: Sequence[HeadSpec]) -> HeadData | None:
    """The judged turns of one head; None without any.

    A turn is left out if the bundle did not compute one of the inputs for it, or if the raters'
    values are none of the head's labels.
    """
    if head.dimension is Dimension.OUTCOME:
        return None
    inputs = inputs_of(head, heads)
    rows: list[tuple[JudgedTurn, dict[str, list[float]]]] = []
    for turn in judged.turns:
        if turn.head != head.name or max(turn.values) >= len(head.labels) or min(turn.values) < 0:
            continue
        score = judged.scores[turn.session_id, turn.seq]
        found = {one.name: probabilities(one, score) for one in inputs}
        known = {name: values for name, values in found.items() if values is not None}
        if len(known) == len(inputs):
            rows.append((turn, known))
    if not rows:
        return None
    names = {name: place for place, name in enumerate(sorted(set(judged.counsellors.values())))}
    groups = [
        names.get(judged.counsellors.get(turn.session_id, ""), len(names)) for turn, _ in rows
    ]
    return HeadData(
        head=head.name,
        labels=tuple(head.labels),
        ordered=head.kind is HeadKind.LEVEL,
        offsets=tuple(head.offsets),
        probabilities={
            one.name: np.array([found[one.name] for _, found in rows]) for one in inputs
        },
        target=np.array([_shares(turn, len(head.labels)) for turn, _ in rows]),
        weight=np.ones(len(rows)),
        group=np.array(groups, dtype=np.int64),
        disputed=np.array([turn.disputed for turn, _ in rows]),
        blind=np.array([turn.blind for turn, _ in rows]),
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
    return values if abs(sum(values) - 1.0) <= LARGEST_SUM_ERROR else None


def _shares(turn: JudgedTurn, labels: int) -> Floats:
    return np.asarray(np.bincount(turn.values, minlength=labels) / len(turn.values))
