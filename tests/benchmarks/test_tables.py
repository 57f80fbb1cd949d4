"""Tables are generated from stored figures, between markers, and list what is missing."""

from pathlib import Path

import msgspec
import pytest

from benchmarks import reports
from benchmarks.agreement import Agreement
from benchmarks.load.consumer_group import Flow
from benchmarks.load.schedule import Latency
from benchmarks.operations import EncoderSize
from benchmarks.parts import accelerator, alternatives, latency, length
from benchmarks.parts.accelerator import Device
from benchmarks.parts.alternatives import Line, Ratio
from benchmarks.parts.length import Length, OtherBundle
from benchmarks.report import markdown
from benchmarks.report.machine import Machine

MACHINE = Machine("Processor", 2, 8, "Linux", "3.11", "1.30", 0.1)


def side_by_side() -> alternatives.Result:
    return alternatives.Result(
        22.8,
        [
            Line("bare", "sessions", 1, 100, [400.0, 200.0, 410.0]),
            Line("ours", "worker", 1, 100, [380.0, 180.0, 390.0], [150.0, 160.0, 140.0]),
            Line("peer", "engine", 1, 100, missing="needs Java"),
        ],
        [Ratio("ours", "bare", 0.9), Ratio("ours", "peer", 0.0)],
    )


def report(part: str, result: object, quick: bool = False) -> reports.Report:
    return reports.report(reports.PARTS[part], "bundle-1", MACHINE, 3, quick, 1.0, result)


def test_ratios_come_first_and_unmeasured_lines_have_a_reason() -> None:
    shown = alternatives.table(side_by_side())
    assert shown.index("| ours / bare | 0.95 | 0.9 |") < shown.index("| bare | sessions | 400.0 |")
    assert "| ours / peer | not measured |  |" in shown
    assert "| peer | engine: needs Java | not measured |" in shown
    assert "| ours | worker | 380.0 | 180-390 | 150 | 100 |" in shown


def test_a_report_round_trips_through_its_file(tmp_path: Path) -> None:
    written = report("alternatives", side_by_side())
    assert reports.write(written, tmp_path).name == "alternatives.json"
    found = reports.read("alternatives", tmp_path)
    assert found == written
    assert reports.read("latency", tmp_path) is None


def test_a_document_gets_the_tables_that_have_figures(tmp_path: Path) -> None:
    reports.write(report("alternatives", side_by_side()), tmp_path)
    text = (
        "# Title\n<!-- alternatives -->\nold\n<!-- /alternatives -->\nwords\n"
        "<!-- latency -->\n<!-- /latency -->\n"
    )
    found = reports.document(text, tmp_path)
    assert "old" not in found
    assert "| ours / bare | 0.95 |" in found
    assert "2 cores" in found
    assert f"<!-- latency -->\n{markdown.NOT_MEASURED}\n<!-- /latency -->" in found
    assert found.startswith("# Title\n")
    assert "\nwords\n" in found
    assert reports.document(found, tmp_path) == found


def test_a_quick_run_is_marked_as_not_meaningful() -> None:
    assert "mean nothing" in reports.shown(report("alternatives", side_by_side(), quick=True))
    assert "mean nothing" not in reports.shown(report("alternatives", side_by_side()))


def test_missing_markers_are_an_error() -> None:
    with pytest.raises(ValueError, match="<!-- alternatives -->"):
        markdown.replace("nothing", "alternatives", "table")


def test_the_published_document_is_complete_and_up_to_date() -> None:
    text = reports.DOCUMENT.read_text("utf-8")
    assert sorted(markdown.names(text)) == sorted(reports.PARTS)
    assert reports.document(text, reports.RESULTS) == text


def test_published_figures_are_not_from_quick_runs() -> None:
    """At least three rounds, but for the load of the console: a round of it has 1,900 requests."""
    for name in reports.PARTS:
        found = reports.read(name, reports.RESULTS)
        rounds = 1 if name == "web" else 3
        assert found is None or (not found.quick and found.rounds >= rounds)


def test_percentiles_are_medians_over_rounds() -> None:
    flows = [Flow(40.0, Latency(p, 2 * p, 3 * p, 4 * p, 9), 1.0, [0, p]) for p in (10, 30, 20)]
    loads = [latency.Load(0.1, flows)]
    deployment = latency.Deployment("embedded", "sqlite", 1, [500.0, 480.0], [400.0, 410.0], loads)
    shown = latency.table(latency.Result([deployment]))
    assert "| embedded, sqlite x1 | 490 | 480-500 | 405 | 400-410 |" in shown
    assert "| embedded, sqlite x1, 10% | 40.0 | 20 | 40 | 60 | 20 | 1.0 |" in shown


def test_the_cost_model_is_tested_on_unseen_lengths_and_encoders() -> None:
    def measured(tokens: float, mixture: bool = False) -> Length:
        rate = 1 / (0.0002 + 0.0001 * tokens)
        return Length(tokens, mixture, [rate], [rate / 1.25], [100.0])

    a_token = 0.0001 * (0.6 * 10.0 / 20.0 + 0.4 * 2 / 6)
    small = OtherBundle("small", EncoderSize(10.0, 2), 20.0, [1 / (0.0002 + a_token * 20) * 1.1])
    lengths = [measured(8), measured(64), measured(23.0, mixture=True)]
    result = length.Result("whole", EncoderSize(20.0, 6), [0.6], lengths, [small])
    shown = length.table(result)
    assert "ONNX sessions: 200 µs a turn + 100.0 µs a token." in shown
    assert "take 60 % of its time, so a core performs 333 billion" in shown
    assert "| 23.0 (mixture) | 400.0 | +0.0 % | 320.0 | +0.0 % | 100 |" in shown
    assert "(mixture, small) | 1031.2 | -9.1 %" in shown
    assert "error is at most 9.1 %; 15 % are allowed" in shown


def test_an_accelerator_is_compared_with_a_core_and_missing_figures_are_noted() -> None:
    alone = Latency(2.0, 2.5, 2.84, 3.0, 400)
    devices = [
        Device(
            "cuda",
            100,
            [30_000.0, 20_000.0, 31_000.0],
            [15_000.0] * 3,
            [],
            2e-4,
            alone,
            {"encoder": {"CUDA": 71}, "reader": {"CUDA": 98, "CPU": 2}},
        ),
        Device(
            "cpu", 10, [400.0] * 3, [60.0] * 3, [9000.0] * 3, 0.0, alone, {"encoder": {"CPU": 9}}
        ),
    ]
    agreed = Agreement(1500, 0.091, 0.0043, 0.9867, {})
    shown = accelerator.table(
        accelerator.Result(
            "Device 1", 100, devices, [600.0, 500.0, 700.0], [1400.0] * 3, [2400.0] * 3, agreed
        )
    )
    assert "| encoder, Device 1 | 30000 | 20000-31000 |  |" in shown
    assert "| reader, one core | 60 | 60-60 |  |" in shown
    assert "| head, one core | 9000 | 9000-9000 |  |" in shown
    assert "head, Device 1" not in shown, "it does not run there alone"
    assert "| one worker, encoder and reader on Device 1, SQLite | 600 | 500-700 | 1400 |" in shown
    assert "| 4 workers that share it | 2400 | 2400-2400 |  |" in shown
    assert "give 98.7 % equal labels on 1500 turns" in shown
    assert "takes 2.0 ms (median; 99th percentile 2.8 ms)" in shown
    assert "encoder: 71 nodes on CUDA; reader: 98 nodes on CUDA, 2 on CPU." in shown


def test_figures_are_valid_json(tmp_path: Path) -> None:
    path = reports.write(report("alternatives", side_by_side()), tmp_path)
    body = msgspec.json.decode(path.read_bytes())
    assert body["machine"]["cores"] == 2
    assert body["result"]["lines"][1]["rates"] == [380.0, 180.0, 390.0]
