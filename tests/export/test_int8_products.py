"""8-bit products: rounding errors and overflow bounds."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("torch", reason="export/ needs the extra `train`")

import onnx
from onnx import TensorProto, helper, numpy_helper

from export.int8_products import STEPS, fixed_range, static_int8
from export.rounding import column_scales, rounded
from models.model.onnx_model import session

VOCABULARY, WIDTH, OUTPUTS = 40, 64, 96
EXAMPLES = [[1, 9, 12, 2], [1, 15, 7, 20, 11, 2], [1, 25, 2]]


def correlated(generator: np.random.Generator, tokens: int, width: int) -> npt.NDArray[np.float32]:
    """Correlated inputs, like the states of a transformer."""
    mixed = generator.normal(size=(tokens, width // 4)) @ generator.normal(size=(width // 4, width))
    return (mixed + 0.1 * generator.normal(size=mixed.shape)).astype(np.float32)


@pytest.mark.parametrize("rows", [6, 7, 150])
def test_pairs_of_weights_do_not_overflow_16_bits_on_older_processors(rows: int) -> None:
    generator = np.random.default_rng(0)
    weight = generator.normal(size=(rows, 5)) * generator.choice([1, 9], size=(rows, 1))
    weight[:, 2] = 0
    values, scales = rounded(weight, correlated(generator, 300, rows))
    assert values.dtype == np.int8
    assert np.isfinite(scales).all()
    assert not values[:, 2].any()
    sizes = np.abs(values.astype(int))
    neighbours = [sizes[i : i + 2].sum(axis=0).max() for i in range(0, rows, 2)]
    assert 255 * max(neighbours) < 2**15


def test_input_aware_rounding_reduces_the_error_of_the_product() -> None:
    generator = np.random.default_rng(0)
    weight = generator.normal(size=(128, 32))
    inputs = correlated(generator, 2000, 128)
    scales = column_scales(weight)
    plain = np.rint(weight / scales) * scales
    values, same = rounded(weight, inputs)
    np.testing.assert_allclose(same, scales, rtol=1e-6)
    fresh = inputs[:500] + inputs[500:1000]
    error = [np.square(fresh @ (table - weight)).mean() for table in (plain, values * same)]
    assert error[1] < error[0] / 2


@pytest.mark.parametrize(("low", "high"), [(-0.2, 9.0), (-3.0, 3.0), (0.5, 2.0), (0.0, 0.0)])
def test_a_fixed_range_covers_the_values_and_an_exact_zero(low: float, high: float) -> None:
    values = np.random.default_rng(0).uniform(low, high, size=(500, 20)).astype(np.float32)
    scale, zero = fixed_range(values)
    assert 0 <= zero <= STEPS
    shown = (np.clip(np.rint(values / scale) + zero, 0, STEPS) - zero) * scale
    assert np.abs(shown - values).max() <= scale * 1.5


def test_a_fixed_product_includes_its_bias_and_removes_the_mean_error(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    tables = {
        "words": generator.normal(size=(VOCABULARY, WIDTH)),
        "weight": generator.normal(size=(WIDTH, OUTPUTS)),
        "bias": generator.normal(size=OUTPUTS),
    }
    nodes = [
        helper.make_node("Gather", ["words", "input_ids"], ["states"]),
        helper.make_node("MatMul", ["states", "weight"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["sum"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
    ]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    outputs = [
        helper.make_tensor_value_info("sum", TensorProto.FLOAT, ["batch", "tokens", OUTPUTS]),
        helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["batch", "tokens"]),
    ]
    weights = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in tables.items()]
    graph = helper.make_graph(nodes, "product", inputs, outputs, weights)
    source, target = tmp_path / "float.onnx", tmp_path / "int8.onnx"
    version = {"opset_imports": [helper.make_opsetid("", 20)], "ir_version": 10}
    onnx.save(helper.make_model(graph, **version), source)
    static_int8(source, target, EXAMPLES)

    kinds = [node.op_type for node in onnx.load(target).graph.node]
    assert "Add" not in kinds
    assert kinds.count("MatMulIntegerToFloat") == 1
    given, expected = [], []
    for ids in EXAMPLES:
        feeds = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), np.int64)}
        given.append(session(target).run(["sum"], feeds)[0][0])
        expected.append(session(source).run(["sum"], feeds)[0][0])
    errors = np.concatenate(given) - np.concatenate(expected)
    # The word embeddings are 8-bit rows here, which no bias corrects.
    assert np.abs(errors.mean(axis=0)).max() < 0.1
    assert np.abs(errors).max() < 0.5
