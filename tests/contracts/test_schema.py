"""The checked-in schemas match the structs and agree with the decoder."""

import json

import jsonschema
import msgspec
import pytest

from stream_app.contracts import schema, scores
from stream_app.contracts.events import decode
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.session.environment import Policy
from stream_app.errors import ContractError
from tests.fakes import FakeScorer, delete, edit, end, outcome, questionnaire, received, turn
from tests.rule_texts import EAGER


@pytest.mark.parametrize("name", schema.MESSAGES)
def test_the_schema_file_matches_the_struct(name: str) -> None:
    path = schema.SCHEMA_DIR / f"{name}.v{schema.VERSION}.json"
    assert path.read_text("utf-8") == schema.text(name), "run `make schemas`"


@pytest.mark.parametrize("name", schema.MESSAGES)
def test_the_schema_file_is_a_valid_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema.build(name))


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("turn", turn()),
        ("turn", turn(role="listener", domain="peer-support", lang="en-GB", team=None)),
        ("turn", turn(approach="motivational-interviewing")),
        ("turn", turn(approach=None)),
        ("turn", turn(approach="zanzibar")),
        ("turn", turn(seq=-1)),
        ("turn", turn(seq=2**31)),
        ("turn", turn(role="wizard")),
        ("turn", turn(text="")),
        ("turn", turn(text=3)),
        ("turn", turn(session="z" * 201)),
        ("session_end", end()),
        ("session_end", end(reason="r" * 201)),
        ("turn_edit", edit()),
        ("turn_edit", edit(text="")),
        ("turn_edit", edit(turn_id="m-1")),
        ("turn_delete", delete()),
        ("turn_delete", delete(seq=-1)),
        ("outcome", outcome()),
        ("outcome", outcome(kind="sneeze")),
        ("outcome", outcome(seq=-1)),
        ("questionnaire", questionnaire()),
        ("questionnaire", questionnaire(instrument="mood")),
        ("questionnaire", questionnaire(items=[11] * 9)),
        ("questionnaire", questionnaire(items=[1] * 3)),
    ],
)
def test_schema_and_decoder_agree(name: str, raw: bytes) -> None:
    try:
        decode(raw)
        taken = True
    except ContractError:
        taken = False
    assert jsonschema.Draft202012Validator(schema.build(name)).is_valid(json.loads(raw)) is taken


def test_outgoing_messages_match_their_schema_and_round_trip() -> None:
    pipeline = Pipeline(FakeScorer(), Policy(WindowPolicy(), EAGER))
    log = [turn(seq=n) for n in range(8)] + [b"broken", end()]
    result = pipeline.process(received(log), {})
    outputs = [*result.turn_scores, *result.session_scores, *result.alerts]
    outputs += [aside.letter for aside in result.dead_letters]
    kinds = set()
    for output in outputs:
        raw = scores.encode(output)
        body = json.loads(raw)
        kinds.add(body["type"])
        jsonschema.Draft202012Validator(schema.build(body["type"])).validate(body)
        if isinstance(output, scores.DeadLetter):
            assert msgspec.json.decode(raw, type=scores.DeadLetter) == output
        else:
            assert scores.decode(raw) == output
    assert kinds == {"turn_score", "session_score", "alert", "dead_letter"}
