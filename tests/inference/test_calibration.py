"""From logits to probabilities and levels: temperature, bias and offsets of the manifest."""

import msgspec
import numpy as np
import pytest

from stream_app.contracts.events import Role
from stream_app.inference.bundles.bundle import Dimension, HeadKind, HeadSpec
from stream_app.inference.bundles.calibration import calibrate, choose_labels


def head(**changes: object) -> HeadSpec:
    return HeadSpec(
        name="explorations",
        dimension=Dimension.EXPRESSED,
        kind=HeadKind.LEVEL,
        roles=[Role.COUNSELLOR],
        labels=["none", "weak", "strong"],
        **changes,  # type: ignore[arg-type]
    )


def test_temperature_and_bias_come_before_the_softmax() -> None:
    logits = np.array([[2.0, 0.0, 0.0]], np.float32)
    found = calibrate(head(temperature=2.0, bias=[-1.0, 0.0, np.log(2)]), logits)
    np.testing.assert_allclose(found, [[0.25, 0.25, 0.5]])


def test_without_temperature_and_bias_it_is_the_softmax() -> None:
    found = calibrate(head(), np.log(np.array([[0.2, 0.3, 0.5]], np.float32)))
    np.testing.assert_allclose(found, [[0.2, 0.3, 0.5]], rtol=1e-6)


def test_huge_logits_stay_finite() -> None:
    found = calibrate(head(bias=[1.0, 0.0, 0.0]), np.array([[4e4, -4e4, 0.0]], np.float32))
    np.testing.assert_allclose(found, [[1.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("offsets", "level"),
    [
        ([], 0),
        ([0.0, 0.0, 0.0], 0),
        ([0.0, 0.8, 0.0], 1),  # 0.3 * e^0.8 = 0.67 > 0.5
        ([0.0, 0.4, 1.0], 2),  # 0.2 * e = 0.54 > 0.5 > 0.3 * e^0.4 = 0.45
    ],
)
def test_offsets_decide_the_level(offsets: list[float], level: int) -> None:
    assert choose_labels([0.5, 0.3, 0.2], offsets) == level


def test_a_threshold_of_zero_selects_every_sentence() -> None:
    assert choose_labels([1.0, 0.0, 0.0], [0.0, 2.0, 2.0]) == 0


@pytest.mark.parametrize("name", ["bias", "offsets"])
def test_calibration_lists_must_match_the_labels(name: str) -> None:
    raw = msgspec.json.encode(head())
    content = msgspec.json.decode(raw) | {name: [0.1, 0.2]}
    with pytest.raises(msgspec.ValidationError, match="explorations: 2 numbers for 3 labels"):
        msgspec.json.decode(msgspec.json.encode(content), type=HeadSpec)
