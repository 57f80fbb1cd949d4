"""Stored sessions as an adapted bundle would have scored them, from their stored scores alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import structs

from stream_app.adaptation.judgements import probabilities
from stream_app.contracts.scores import MECHANISMS, TOTAL, Expressed, Level
from stream_app.core.measures.heads import Dimension, HeadKind
from stream_app.core.pipeline.recorded_session import RecordedSession
from stream_app.core.session.ports import HeadScores
from stream_app.inference.bundles.adaptations import Recalibration
from stream_app.inference.bundles.bundle import HeadSpec
from stream_app.inference.bundles.calibration import choose_labels
from stream_app.inference.bundles.recalibration import Floats, recalibrated


def rescored(
    session: RecordedSession, changes: Mapping[str, Recalibration], heads: Sequence[HeadSpec]
) -> RecordedSession:
    """The session with recalibrated scores; ``heads`` are those of the adapted bundle."""
    if not changes:
        return session
    scores = {key: _rescored(found, changes, heads) for key, found in session.scores.items()}
    return structs.replace(session, scores=scores)


def _rescored(
    scores: HeadScores, changes: Mapping[str, Recalibration], heads: Sequence[HeadSpec]
) -> HeadScores:
    stored: Mapping[str, Any] = {
        "expressed": msgspec.to_builtins(scores.expressed),
        "perceived": scores.perceived,
        "client": scores.client,
    }
    known: dict[str, Floats] = {}
    for head in heads:
        given = probabilities(head, stored)
        if given is not None:
            known[head.name] = np.array([given])
    possible = {
        name: change
        for name, change in changes.items()
        if name in known and change.weights.keys() <= known.keys()
    }
    after = recalibrated(known, possible)
    expressed, perceived = Expressed(scores.expressed), dict(scores.perceived)
    client, abstained = dict(scores.client), [n for n in scores.abstained if n not in possible]
    for head in heads:
        if head.name not in possible:
            continue
        values = after[head.name][0].tolist()
        if max(values) < head.abstain_below:
            abstained.append(head.name)
        if head.dimension is Dimension.PERCEIVED:
            perceived[head.name] = values[-1]
        elif head.dimension is Dimension.CLIENT:
            client[head.name] = dict(zip(head.labels, values, strict=True))
        elif head.kind is HeadKind.LEVEL:
            expressed[head.name] = Level(int(choose_labels(values, head.offsets)), values)
        else:
            expressed[head.name] = dict(zip(head.labels, values, strict=True))
    levels = [found.level for name in MECHANISMS if (found := expressed.level(name))]
    if levels:
        expressed[TOTAL] = sum(levels)
    return structs.replace(
        scores, expressed=expressed, perceived=perceived, client=client, abstained=abstained
    )
