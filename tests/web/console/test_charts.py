"""Charts are well-formed, have text alternatives, and keep their marks inside."""

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.web.console.plots.charts import AlertLane, risk_curve, sparkline

points = st.lists(
    st.tuples(st.integers(0, 3000), st.floats(0, 1)), max_size=30, unique_by=lambda point: point[0]
).map(sorted)
seqs = st.integers(0, 3000)
spans = st.lists(
    st.builds(
        AlertLane,
        label=st.text(max_size=20),
        state=st.sampled_from(["firing", "pending", "resolved"]),
        first=seqs,
        last=st.none() | seqs,
    ),
    max_size=3,
)
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def percentages(svg: str) -> list[float]:
    return [float(found) for found in re.findall(r'"(-?[\d.]+)%"', svg)]


@given(points, st.none() | st.floats(0, 1))
def test_a_sparkline_stays_in_its_box(line: list[tuple[int, float]], enter: float | None) -> None:
    svg = str(sparkline(line, enter))
    ET.fromstring(svg)
    assert all(0 <= value <= 100 for value in percentages(svg))


@given(points, st.none() | st.floats(0, 1), spans)
def test_a_curve_is_well_formed_whatever_its_labels(
    line: list[tuple[int, float]], enter: float | None, alerts: list[AlertLane]
) -> None:
    last = line[-1][0] if line else 0
    svg = str(risk_curve(line, enter, alerts, last, lambda seq: f"#turn-{seq}"))
    root = ET.fromstring(NOT_IN_XML.sub("", svg))
    links = [link for link in root.iter("a") if link.get("data-seq")]
    assert [link.get("href") for link in links] == [f"#turn-{seq}" for seq, _ in line]
    assert len([link for link in root.iter("a") if not link.get("data-seq")]) == len(alerts)


def test_a_session_without_risk_has_a_text_alternative() -> None:
    assert 'aria-label="No risk yet"' in sparkline([], 0.3)


def test_a_label_is_escaped() -> None:
    alert = AlertLane("<b>&", "firing", 1, None)
    assert "<b>" not in risk_curve([(1, 0.5)], 0.3, [alert], 8, lambda _: "#")


def test_points_above_the_threshold_differ_in_size() -> None:
    svg = str(risk_curve([(1, 0.2), (3, 0.4)], 0.3, [], 8, str))
    radii = [float(found) for found in re.findall(r'<circle[^>]* r="([\d.]+)"', svg)]
    assert radii == sorted(radii)
    assert radii[0] < radii[1]


@pytest.mark.parametrize("count", [1, 2])
def test_the_text_alternative_counts_turns(count: int) -> None:
    line = [(2 * number + 1, 0.5) for number in range(count)]
    assert f"{count} counsellor turn{'s' if count > 1 else ''}:" in sparkline(line, None)
