"""Version 2 of scores has the information of version 1, to the precision of the numbers."""

import json
from typing import Any

import jsonschema
import msgspec
import pytest

from stream_app.contracts import compact, schema, scores
from stream_app.contracts.compact import ScoreReader
from stream_app.contracts.framing import framed
from stream_app.contracts.score_layout import ScoreLayout
from stream_app.contracts.scores import Expressed, Level, SessionScore, TurnScore
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.session.environment import Policy
from tests.fakes import FakeScorer, end, received, turn
from tests.rule_texts import EAGER

MANIFEST: dict[str, Any] = {
    "heads": [
        {
            "name": "emotional_reactions",
            "dimension": "expressed",
            "kind": "level",
            "roles": ["counsellor"],
            "labels": ["none", "weak", "strong"],
        },
        {
            "name": "strategy",
            "dimension": "expressed",
            "kind": "categorical",
            "roles": ["counsellor"],
            "labels": ["question", "others", "information"],
        },
        {
            "name": "engagement",
            "dimension": "perceived",
            "kind": "binary",
            "roles": ["counsellor"],
            "labels": ["no", "yes"],
        },
        {
            "name": "satisfaction",
            "dimension": "outcome",
            "kind": "binary",
            "roles": ["client"],
            "labels": ["no", "yes"],
        },
    ]
}
LAYOUT = ScoreLayout.of_manifest(MANIFEST)
BASE = {
    "type": "turn_score",
    "session_id": "s-1",
    "seq": 4,
    "stage": "final",
    "bundle": "b-1",
    "role": "counsellor",
    "occurred_at": "2026-03-02T10:15:09Z",
    "late": False,
    "truncated": False,
    "expressed": {},
    "perceived": {},
    "client": {},
    "confidence": 0.5,
    "abstained": [],
}
SCORES = {
    "every head": {
        "expressed": {
            "emotional_reactions": {
                "level": 1,
                "probabilities": [0.12345, 0.76543, 0.11112],
                "rationale": [[0, 4], [7, 19]],
            },
            "strategy": {"information": 0.2, "others": 0.1, "question": 0.7},
            "empathy_total": 1,
        },
        "perceived": {"engagement": 0.48602},
        "abstained": ["strategy", "unknown"],
        "low_empathy_risk": 0.17678,
    },
    "a level without rationale": {
        "expressed": {
            "emotional_reactions": {"level": 0, "probabilities": [1.0, 0.0, 0.0], "rationale": []},
            "empathy_total": 0,
        },
        "stage": "provisional",
        "late": True,
        "truncated": True,
    },
    "a head in the middle is missing": {"perceived": {"engagement": 1.0}},
    "probes and an outcome": {
        "role": "client",
        "client": {
            "distress": {"no": 0.25, "yes": 0.75},
            "satisfaction": {"no": 0.1, "yes": 0.9},
        },
        "intents": {"refund": 0.8},
    },
    "heads that the manifest lacks": {
        "expressed": {
            "warmth": {"level": 2, "probabilities": [0.1, 0.2, 0.7], "rationale": [[1, 2]]},
            "tone": {"kind": 0.5, "cold": 0.5},
            "strategy": {"question": 0.6, "silence": 0.4},
        },
        "perceived": {"helpfulness": 0.25},
        "client": {"talk": {"change": 0.5, "sustain": 0.5}},
    },
    "a total that is no sum": {
        "expressed": {
            "emotional_reactions": {"level": 1, "probabilities": [0.0, 1.0, 0.0], "rationale": []},
            "empathy_total": 5,
        }
    },
    "nothing": {},
}


def rounded(value: Any) -> Any:
    match value:
        case float():
            return pytest.approx(value, abs=5.1e-5)
        case dict():
            return {key: rounded(item) for key, item in value.items()}
        case list():
            return [rounded(item) for item in value]
        case _:
            return value


@pytest.mark.parametrize("name", SCORES)
def test_a_turn_score_is_read_as_it_was_written(name: str) -> None:
    score = scores.decode(json.dumps(BASE | SCORES[name]).encode())
    assert isinstance(score, TurnScore)
    raw = compact.encode_turn(score, LAYOUT)
    jsonschema.Draft202012Validator(schema.build("turn_score", 2)).validate(json.loads(raw))
    found = ScoreReader(lambda _: MANIFEST).read(raw)
    assert json.loads(scores.encode(found)) == rounded(json.loads(scores.encode(score)))
    assert isinstance(found, TurnScore)
    assert compact.encode_turn(found, LAYOUT) == raw


def test_session_scores_of_whole_sessions_are_read_as_they_were_written() -> None:
    pipeline = Pipeline(FakeScorer(), Policy(WindowPolicy(), EAGER))
    given = [
        turn(seq=0, approach="motivational-interviewing"),
        *(turn(seq=n) for n in range(1, 12)),
    ]
    states: dict[str, Any] = {}
    seen = 0
    for event in [*given, end()]:
        for score in pipeline.process(received([event]), states).session_scores:
            raw = compact.encode_session(score)
            jsonschema.Draft202012Validator(schema.build("session_score", 2)).validate(
                json.loads(raw)
            )
            found = compact.read(raw, lambda _: LAYOUT)
            assert json.loads(scores.encode(found)) == rounded(json.loads(scores.encode(score)))
            seen += score.miti is not None
    assert seen > 2


def test_a_session_without_any_measure_is_read_as_it_was_written() -> None:
    score = compact.read(
        b'{"type":"session_score","v":2,"session_id":"s","bundle":"b"}', _no_layout
    )
    assert isinstance(score, SessionScore)
    assert (score.turns, score.low_empathy_risk, score.empathy_interval) == (0, None, None)


def test_the_reader_asks_for_a_manifest_once_and_reads_both_versions() -> None:
    asked: list[str] = []

    def manifest_of(bundle: str) -> dict[str, Any]:
        asked.append(bundle)
        return MANIFEST

    reader = ScoreReader(manifest_of)
    full = json.dumps(BASE | SCORES["every head"]).encode()
    score = scores.decode(full)
    assert isinstance(score, TurnScore)
    assert reader.read(full) == score
    assert asked == []
    value = framed(7, compact.encode_turn(score, LAYOUT))
    assert reader.read(value) == reader.read(value)
    assert asked == ["b-1"]


@pytest.mark.parametrize(
    "heads",
    [
        pytest.param([1, 2, 3, 4, 5], id="more heads than the bundle"),
        pytest.param([[0, 1, 2, 3], [1, 2]], id="fewer labels than the head"),
        pytest.param([[0, 1, 2, 3, "x"]], id="no number"),
    ],
)
def test_a_score_that_does_not_fit_its_bundle_is_refused(heads: list[Any]) -> None:
    body = {"type": "turn_score", "v": 2, "session_id": "s", "seq": 0, "bundle": "b-1"}
    body |= {"role": "counsellor", "at": "2026-03-02T10:15:09Z", "confidence": 1, "heads": heads}
    with pytest.raises(msgspec.ValidationError, match="b-1"):
        compact.read(json.dumps(body).encode(), lambda _: LAYOUT)


def test_version_2_needs_a_third_of_the_bytes() -> None:
    labels = [f"a_label_with_a_long_name_{number}" for number in range(20)]
    head = {**MANIFEST["heads"][1], "labels": labels}
    expressed = Expressed(strategy=dict.fromkeys(labels, 0.0312345678901234))
    expressed["emotional_reactions"] = Level(0, [0.9123456789, 0.04, 0.0476543211])
    score = msgspec.structs.replace(
        scores.decode(json.dumps(BASE).encode()), expressed=expressed, perceived={"engagement": 0.5}
    )
    assert isinstance(score, TurnScore)
    layout = ScoreLayout.of_manifest({"heads": [MANIFEST["heads"][0], head]})
    assert 3 * len(compact.encode_turn(score, layout)) < len(scores.encode(score))


def _no_layout(bundle: str) -> ScoreLayout:
    raise AssertionError(bundle)
