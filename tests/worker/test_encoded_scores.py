"""Workers publish the version of the schemas that the settings choose."""

import msgspec
import pytest

from stream_app.contracts import cloudevents, compact
from stream_app.contracts.compact import ScoreReader
from stream_app.contracts.scores import Alert, SessionScore, TurnScore
from stream_app.core.measures.heads import layout_of
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.session.environment import Policy
from stream_app.worker.batches.encoded_scores import encoding
from tests.fakes import FakeScorer, end, received, turn
from tests.rule_texts import EAGER


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline(FakeScorer(), Policy(WindowPolicy(), EAGER))


def test_each_version_is_read_back_with_its_own_schema(pipeline: Pipeline) -> None:
    log = [turn(seq=n) for n in range(8)] + [end()]
    result = pipeline.process(received(log), {})
    outputs = [*result.turn_scores, *result.session_scores, *result.alerts]
    assert {type(output) for output in outputs} == {TurnScore, SessionScore, Alert}
    heads = layout_of(pipeline.bundles.default.scorer.heads)
    for output in outputs:
        full, small = (encoding(version)(output, pipeline) for version in (1, compact.VERSION))
        assert ScoreReader(lambda _: {}).read(full.value) == output
        found = compact.read(small.value, lambda _: heads)
        assert (type(found), found.session_id) == (type(output), output.session_id)
        schema = dict(cloudevents.outgoing_headers(small.kind, small.value))["ce_dataschema"]
        version = b"v1" if isinstance(output, Alert) else b"v2"
        assert schema.endswith(version)
        assert dict(cloudevents.outgoing_headers(full.kind, full.value))["ce_dataschema"].endswith(
            b"v1"
        )


def test_a_score_of_a_bundle_that_is_not_in_force_is_published_in_full(pipeline: Pipeline) -> None:
    [score, *_] = pipeline.process(received([turn(seq=0)]), {}).turn_scores
    other = msgspec.structs.replace(score, bundle="another")
    found = encoding(compact.VERSION)(other, pipeline)
    assert found.kind == "turn_score"
    assert ScoreReader(lambda _: {}).read(found.value) == other
