"""Stored values are described in the API as in the message contract."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct
from pydantic import Field, TypeAdapter

from stream_app.contracts.scores import SessionScore
from stream_app.store.database.described import described_by


class Contract(Struct):
    count: Annotated[int, Meta(ge=0, description="How many")]
    share: Annotated[Annotated[float, Meta(ge=0, le=1)] | None, Meta(description="Of all")]
    mean: Annotated[float, Meta(gt=1, lt=9, description="In the middle")] | None
    plain: str
    both: int | str


def properties(cls: type) -> dict[str, Any]:
    return TypeAdapter(cls).json_schema()["properties"]


def test_fields_of_the_same_name_get_the_contracts_words_and_ranges() -> None:
    @dataclass(frozen=True, slots=True)
    @described_by(Contract)
    class Shown:
        count: int
        share: float | None
        mean: float | None
        plain: str
        both: int | str
        extra: int

    found = properties(Shown)
    assert found["count"] == {
        "title": "Count", "type": "integer", "minimum": 0, "description": "How many",
    }  # fmt: skip
    assert found["share"]["description"] == "Of all"
    assert {"type": "number", "minimum": 0, "maximum": 1} in found["share"]["anyOf"]
    assert {"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 9} in found["mean"][
        "anyOf"
    ]
    assert all("description" not in found[name] for name in ("plain", "both", "extra"))
    assert Shown(count=1, share=None, mean=2.0, plain="", both=1, extra=3).share is None


def test_a_field_may_keep_its_own_description() -> None:
    @dataclass
    @described_by(Contract)
    class Shown:
        count: Annotated[int, Field(description="Sessions")]

    assert properties(Shown)["count"]["description"] == "Sessions"


def test_a_class_without_a_field_of_the_contract_is_refused() -> None:
    with pytest.raises(TypeError, match="no field in common with SessionScore"):

        @described_by(SessionScore)
        class Other:
            nothing: int
