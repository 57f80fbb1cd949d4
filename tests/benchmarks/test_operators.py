"""The profile of a bundle's ONNX sessions."""

from benchmarks import operators
from stream_app.inference.bundles import bundle as bundles


def test_every_operator_of_both_graphs_is_timed() -> None:
    profile = operators.measure(bundles.find("nano"), turns=32, batch=8)
    assert profile.encoder["MatMulIntegerToFloat"] > 0
    assert profile.head > 0
    shown = operators.table([profile])
    assert "rapport-nano" in shown
    assert f"| encoder | {sum(profile.encoder.values()):.0f} |" in shown
