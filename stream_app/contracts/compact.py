"""Version 2 of turn and session scores: the information of version 1 in a third of the bytes.

Numbers are whole ten-thousandths. What the bundle's manifest knows is left out: heads and labels
stand in its order (``contracts.score_layout``). Fields with their default are left out, too.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from stream_app.contracts.events import Role
from stream_app.contracts.framing import unframed
from stream_app.contracts.score_layout import (
    EXPRESSED,
    PERCEIVED,
    SCALE,
    HeadLabels,
    ScoreLayout,
    has_derived_total,
    total_of,
    units,
    value_of,
)
from stream_app.contracts.scores import (
    MECHANISMS,
    TOTAL,
    Distribution,
    Expressed,
    Level,
    MechanismSummary,
    MitiSummary,
    Output,
    SessionScore,
    SessionStatus,
    Stage,
    TurnScore,
    decode,
    decode_expressed,
)

VERSION: Final = 2
MEASURES: Final = (
    "low_empathy_risk",
    "empathy_index",
    "empathy_low",
    "empathy_high",
    "empathy_percentile",
    "answered_share",
    "empathy_total_mean",
    "talk_share",
    "reflection_to_question",
    "complex_reflection_share",
    "open_question_share",
)
"""The order of a session's measures. Part of the version: only ever append."""
_PROBE: Final = {"no", "yes"}

Units = Annotated[int, Meta(description="Ten-thousandths")]


class CompactTurnScore(
    Struct, frozen=True, tag_field="type", tag="turn_score", kw_only=True, omit_defaults=True
):
    """The score of one turn; identified by (session_id, seq, stage, bundle)."""

    v: Annotated[Literal[2], Meta(description="Version of the schema")]
    session_id: str
    seq: int
    stage: Stage = Stage.FINAL
    bundle: str
    role: Role
    at: Annotated[datetime, Meta(description="`occurred_at` of version 1")]
    heads: Annotated[
        list[int | list[Any] | None],
        Meta(
            description="By head of the turn's role, in the manifest's order: the probability of "
            "yes for perceived and binary heads; [level, *probabilities, [rationale spans]] for "
            "heads of levels (without spans if there are none); the labels' probabilities for "
            "others; null: not scored. Ten-thousandths"
        ),
    ] = []
    probes: Annotated[
        dict[str, int], Meta(description="Probability of yes by probe of client turns")
    ] = {}
    confidence: Units
    abstained: Annotated[
        list[int | str],
        Meta(description="Heads whose confidence is too low to use: places in `heads`"),
    ] = []
    risk: Annotated[int | None, Meta(description="`low_empathy_risk` of version 1")] = None
    intents: Annotated[dict[str, int], Meta(description="Scores of intents, ten-thousandths")] = {}
    late: bool = False
    truncated: bool = False
    others: Annotated[
        dict[str, Any],
        Meta(description="What the manifest does not describe, by field, as in version 1"),
    ] = {}


class CompactSessionScore(
    Struct, frozen=True, tag_field="type", tag="session_score", kw_only=True, omit_defaults=True
):
    """Aggregates of one session so far, identified by (session_id, bundle)."""

    v: Annotated[Literal[2], Meta(description="Version of the schema")]
    session_id: str
    bundle: str
    status: SessionStatus = SessionStatus.OPEN
    started_at: datetime | None = None
    last_at: Annotated[datetime | None, Meta(description="`last_activity_at` of version 1")] = None
    turns: int = 0
    counsellor_turns: int = 0
    late_turns: int = 0
    withheld_turns: int = 0
    unscored_turns: int = 0
    mechanisms: Annotated[
        list[tuple[int, int, int]],
        Meta(
            description="mean, recent_mean and share of emotional_reactions, interpretations and "
            "explorations; ten-thousandths"
        ),
    ] = []
    measures: Annotated[
        list[int | None],
        Meta(
            description=f"{', '.join(MEASURES)}; ten-thousandths; null or missing at the end: none"
        ),
    ] = []
    missed: Annotated[list[int], Meta(description="`missed_opportunities` of version 1")] = []
    outcome_risks: Annotated[dict[str, int], Meta(description="By name; ten-thousandths")] = {}
    risks: Annotated[
        list[tuple[int, int]],
        Meta(description="`risk_by_turn` of version 1: [seq, risk in ten-thousandths]"),
    ] = []
    miti: Annotated[MitiSummary | None, Meta(description="As in version 1")] = None


Compact = CompactTurnScore | CompactSessionScore
LayoutOf = Callable[[str], ScoreLayout]
"""The layout of a bundle by its id."""

_encoder: Final = msgspec.json.Encoder()


class _Version(Struct, frozen=True):
    v: int = 1


_version: Final = msgspec.json.Decoder(_Version)
_decoder: msgspec.json.Decoder[Compact] = msgspec.json.Decoder(Compact)


def encode_turn(score: TurnScore, layout: ScoreLayout) -> bytes:
    """Encode a turn score in version 2."""
    heads = layout.by_role[score.role]
    values = [value_of(head, score.expressed, score.perceived, score.client) for head in heads]
    known = {head.name for head, value in zip(heads, values, strict=True) if value is not None}
    probes = {
        name: units(found["yes"])
        for name, found in score.client.items()
        if name not in known and found.keys() == _PROBE
    }
    places = {head.name: place for place, head in enumerate(heads)}
    return _encoder.encode(
        CompactTurnScore(
            v=VERSION,
            session_id=score.session_id,
            seq=score.seq,
            stage=score.stage,
            bundle=score.bundle,
            role=score.role,
            at=score.occurred_at,
            heads=_without_end([_compact(*pair) for pair in zip(heads, values, strict=True)]),
            probes=probes,
            confidence=units(score.confidence),
            abstained=[places.get(name, name) for name in score.abstained],
            risk=_units_or_none(score.low_empathy_risk),
            intents={name: units(value) for name, value in score.intents.items()},
            late=score.late,
            truncated=score.truncated,
            others=_others(score, known | probes.keys()),
        )
    )


def encode_session(score: SessionScore) -> bytes:
    """Encode a session score in version 2."""
    low, high = score.empathy_interval or (None, None)
    interval = {"empathy_low": low, "empathy_high": high}
    measures = [interval[n] if n in interval else getattr(score, n) for n in MEASURES]
    return _encoder.encode(
        CompactSessionScore(
            v=VERSION,
            session_id=score.session_id,
            bundle=score.bundle,
            status=score.status,
            started_at=score.started_at,
            last_at=score.last_activity_at,
            turns=score.turns,
            counsellor_turns=score.counsellor_turns,
            late_turns=score.late_turns,
            withheld_turns=score.withheld_turns,
            unscored_turns=score.unscored_turns,
            mechanisms=[
                (units(found.mean), units(found.recent_mean), units(found.share))
                for name in MECHANISMS
                if (found := score.mechanisms.get(name)) is not None
            ],
            measures=_without_end([_units_or_none(value) for value in measures]),
            missed=score.missed_opportunities,
            outcome_risks={name: units(p) for name, p in score.outcome_risks.items()},
            risks=[(seq, units(risk)) for seq, risk in score.risk_by_turn],
            miti=score.miti,
        )
    )


class ScoreReader:
    """Reads turn scores, session scores and alerts of both versions from the values of records.

    ``manifest_of``: returns the manifest of a bundle by its id, as in ``bundle.json`` and in
    ``GET /api/v1/bundles/ID``; it is called once for each bundle, and only for version 2.
    """

    def __init__(self, manifest_of: Callable[[str], Mapping[str, Any]]) -> None:
        self._manifest_of = manifest_of
        self._layouts: dict[str, ScoreLayout] = {}

    def read(self, value: bytes) -> Output:
        """The message, which may be framed, in the form of version 1.

        Raises:
            msgspec.DecodeError: it is none, or does not fit the bundle's manifest.
        """
        return read(value, self._layout)

    def _layout(self, bundle: str) -> ScoreLayout:
        found = self._layouts.get(bundle)
        if found is None:
            found = ScoreLayout.of_manifest(self._manifest_of(bundle))
            self._layouts[bundle] = found
        return found


def is_compact(raw: bytes) -> bool:
    """Whether an unframed message is of version 2.

    Raises:
        msgspec.DecodeError: it is no JSON object.
    """
    return _version.decode(raw).v == VERSION


def read(raw: bytes, layout_of: LayoutOf) -> Output:
    """A turn score, session score or alert of either version, which may be framed.

    Raises:
        msgspec.DecodeError: it is none, or does not fit its bundle's layout.
    """
    bare = unframed(raw)
    if not is_compact(bare):
        return decode(bare)
    found = _decoder.decode(bare)
    if isinstance(found, CompactSessionScore):
        return _session(found)
    try:
        return _turn(found, layout_of(found.bundle))
    except (IndexError, TypeError, ValueError):
        raise msgspec.ValidationError(
            f"the score does not fit the heads of the bundle {found.bundle}"
        ) from None


def _turn(found: CompactTurnScore, layout: ScoreLayout) -> TurnScore:
    heads = layout.by_role[found.role]
    if len(found.heads) > len(heads):
        raise ValueError("the bundle has fewer heads")
    expressed = Expressed()
    parts: dict[str, dict[str, Any]] = {
        EXPRESSED: expressed,
        PERCEIVED: {},
        "client": {name: _distribution(_no_yes(p)) for name, p in found.probes.items()},
    }
    for head, value in zip(heads, found.heads, strict=False):
        if value is not None:
            parts.get(head.dimension, parts["client"])[head.name] = _expanded(head, value)
    total = total_of(expressed)
    if total is not None:
        expressed[TOTAL] = total
    others = found.others
    if EXPRESSED in others:
        expressed.update(decode_expressed(Expressed, others[EXPRESSED]))
    return TurnScore(
        session_id=found.session_id,
        seq=found.seq,
        stage=found.stage,
        bundle=found.bundle,
        role=found.role,
        occurred_at=found.at,
        late=found.late,
        truncated=found.truncated,
        expressed=expressed,
        perceived={**parts[PERCEIVED], **others.get(PERCEIVED, {})},
        client={**parts["client"], **others.get("client", {})},
        confidence=found.confidence / SCALE,
        abstained=[heads[item].name if isinstance(item, int) else item for item in found.abstained],
        low_empathy_risk=_share_or_none(found.risk),
        intents=_distribution(found.intents),
    )


def _session(found: CompactSessionScore) -> SessionScore:
    missing = [None] * (len(MEASURES) - len(found.measures))
    measures = {
        name: _share_or_none(value)
        for name, value in zip(MEASURES, [*found.measures, *missing], strict=False)
    }
    low, high = measures.pop("empathy_low"), measures.pop("empathy_high")
    return SessionScore(
        session_id=found.session_id,
        bundle=found.bundle,
        status=found.status,
        started_at=found.started_at,
        last_activity_at=found.last_at,
        turns=found.turns,
        counsellor_turns=found.counsellor_turns,
        late_turns=found.late_turns,
        withheld_turns=found.withheld_turns,
        unscored_turns=found.unscored_turns,
        mechanisms={
            name: MechanismSummary(*(value / SCALE for value in values))
            for name, values in zip(MECHANISMS, found.mechanisms, strict=False)
        },
        empathy_interval=(low, high) if low is not None and high is not None else None,
        missed_opportunities=found.missed,
        outcome_risks=_distribution(found.outcome_risks),
        risk_by_turn=[(seq, value / SCALE) for seq, value in found.risks],
        miti=found.miti,
        **measures,
    )


def _compact(head: HeadLabels, value: Any) -> int | list[Any] | None:
    if value is None:
        return None
    if isinstance(value, Level):
        found: list[Any] = [value.level, *(int(p * SCALE + 0.5) for p in value.probabilities)]
        return [*found, value.rationale] if value.rationale else found
    if isinstance(value, dict):
        if head.binary:
            return units(value["yes"])
        return [int(value[label] * SCALE + 0.5) for label in head.labels]
    return units(value)


def _expanded(head: HeadLabels, value: int | list[Any]) -> Level | Distribution | float:
    if isinstance(value, int):
        if head.dimension == PERCEIVED:
            return value / SCALE
        return _distribution(_no_yes(value))
    if head.levels:
        level, *probabilities = value
        spans = probabilities.pop() if isinstance(probabilities[-1], list) else []
        rationale = [(start, end) for start, end in spans]
        return Level(level, [p / SCALE for p in probabilities], rationale)
    return {label: p / SCALE for label, p in zip(head.labels, value, strict=True)}


def _others(score: TurnScore, known: set[str]) -> dict[str, Any]:
    """What the layout has no place for, by field."""
    found: dict[str, Any] = {
        field: {name: value for name, value in values.items() if name not in known}
        for field, values in (
            (EXPRESSED, score.expressed),
            (PERCEIVED, score.perceived),
            ("client", score.client),
        )
    }
    if has_derived_total(score.expressed):
        found[EXPRESSED].pop(TOTAL, None)
    return {field: values for field, values in found.items() if values}


def _no_yes(yes: int) -> dict[str, int]:
    return {"no": SCALE - yes, "yes": yes}


def _distribution(found: dict[str, int]) -> Distribution:
    return {name: value / SCALE for name, value in found.items()}


def _units_or_none(value: float | None) -> int | None:
    return None if value is None else units(value)


def _share_or_none(value: int | None) -> float | None:
    return None if value is None else value / SCALE


def _without_end(values: list[Any]) -> list[Any]:
    """The list without the None at its end."""
    while values and values[-1] is None:
        values.pop()
    return values
