"""Encodes the judged turns with their windows by the bundle, for training an adapter."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Final

import numpy as np

from stream_app.adaptation import judged_vectors, judgements
from stream_app.adaptation.adapting import counts_of
from stream_app.adaptation.judged_vectors import HeadJudgements, JudgedVectors
from stream_app.contracts.scores import Stage
from stream_app.core.measures.window import Neighbour, ScoringRequest, WindowTurn
from stream_app.inference.bundles.calibration import calibrated
from stream_app.inference.bundles.recalibration import Floats
from stream_app.inference.scorer import OnnxScorer
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.sessions import transcripts
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.sessions.transcripts import TurnRead
from stream_app.store.stream.repository import Store
from stream_app.store.work import judged_turns
from stream_app.store.work.judged_turns import Judged, TurnKey

NO_TEXT: Final = "of turns whose text, or that of their window, is no longer stored"
PAGE: Final = 1000


def run(store: Store, scorer: OnnxScorer, wordings: Sequence[str], file: Path) -> JudgedVectors:
    """Encode the windows of all judged turns and write them; the file must not exist.

    Each session whose text is read is in the audit trail.

    Raises:
        VectorFileError: the file exists or cannot be written.
    """
    if file.exists():
        raise judged_vectors.VectorFileError(f"{file} exists: name another file with --export")
    judged = judged_turns.read(store, scorer.bundle_id, wordings)
    keys = sorted({(one.session_id, one.seq) for one in judged.turns})
    requests = dict(_requests(store, scorer, keys))
    left_out = judged.left_out.copy()
    if missing := sum((one.session_id, one.seq) not in requests for one in judged.turns):
        left_out[NO_TEXT] += missing
    known = replace(
        judged,
        turns=[one for one in judged.turns if (one.session_id, one.seq) in requests],
        left_out=left_out,
    )
    heads, gap = _heads(known, scorer, requests)
    found = JudgedVectors(
        scorer.bundle_id,
        scorer.bundle.digest,
        counts_of(known, wordings),
        gap,
        scorer.head.feeds(list(requests.values())),
        heads,
    )
    judged_vectors.write(found, file)
    return found


def _requests(
    store: Store, scorer: OnnxScorer, keys: Sequence[TurnKey]
) -> Iterator[tuple[TurnKey, ScoringRequest]]:
    """The judged turns in their windows, as far as all of a window's texts are stored."""
    for session_id, group in groupby(keys, key=lambda key: key[0]):
        audit.record(
            store, audit.COMMAND_LINE, AuditAction.READ_TRANSCRIPT, session_id, "adapt --export"
        )
        turns = [one for one in _turns(store, session_id) if one.unscored is None]
        place = {turn.seq: number for number, turn in enumerate(turns)}
        windows: dict[TurnKey, range] = {}
        before, after = scorer.window
        for key in group:
            at = place.get(key[1])
            if at is not None:
                window = range(max(0, at - before), min(len(turns), at + after + 1))
                if all(turns[number].text is not None for number in window):
                    windows[key] = window
        needed = sorted({number for window in windows.values() for number in window})
        encoded = dict(zip(needed, _encoded(scorer, [turns[n] for n in needed]), strict=True))
        for key, window in windows.items():
            at = place[key[1]]
            context = [Neighbour(encoded[n], n - at) for n in window if n != at]
            yield key, ScoringRequest(encoded[at], Stage.FINAL, context)


def _turns(store: Store, session_id: str) -> list[TurnRead]:
    found: list[TurnRead] = []
    while page := transcripts.read(
        store, ALL_SESSIONS, session_id, after_seq=found[-1].seq if found else -1, limit=PAGE
    ):
        found += page
    return [turn for turn in found if turn.role.is_scored]


def _encoded(scorer: OnnxScorer, turns: Sequence[TurnRead]) -> list[WindowTurn]:
    texts, roles = [turn.text or "" for turn in turns], [turn.role for turn in turns]
    return [
        WindowTurn(
            seq=turn.seq,
            role=turn.role,
            occurred_at=turn.occurred_at,
            digest=0,
            words=0,
            vectors=encoding.vectors,
        )
        for turn, encoding in zip(turns, scorer.encode(texts, roles), strict=True)
    ]


def _heads(
    judged: Judged, scorer: OnnxScorer, requests: dict[TurnKey, ScoringRequest]
) -> tuple[dict[str, HeadJudgements], float]:
    """Judgements by head, and the mean difference of the probabilities from the stored ones."""
    manifest, place = scorer.bundle.manifest, {key: row for row, key in enumerate(requests)}
    computed = calibrated(manifest, scorer.head.logits(list(requests.values()))) if place else {}
    found: dict[str, HeadJudgements] = {}
    gaps: list[Floats] = []
    for spec in manifest.heads:
        own = judgements.of_turns(judged, spec, judged.turns)
        if own is None:
            continue
        keys = [(turn.session_id, turn.seq) for turn in own.turns]
        rows = np.array([place[key] for key in keys], dtype=np.int64)
        found[spec.name] = HeadJudgements(rows, *own[1:])
        for key in keys:
            stored = judgements.probabilities(spec, judged.scores[key])
            if stored is not None:
                gaps.append(np.abs(computed[spec.name][place[key]] - np.array(stored)))
    return found, float(np.concatenate(gaps).mean()) if gaps else 0.0
