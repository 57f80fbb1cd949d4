"""The section on low empathy in docs/evaluation.md, from a small synthetic file."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from models.pages import document
from models.pages.low_empathy import Row, low_empathy_section, shipped_section

DOMAINS = ("peer-support", "counselling")


def known(value: float | None, half: float = 0.02) -> dict[str, Any]:
    if value is None:
        return {"value": None, "low": None, "high": None, "resamples": 0}
    return {"value": value, "low": value - half, "high": value + half, "resamples": 1000}


def way(changed: str, control: str, end: float, soon: float, **other: str) -> dict[str, Any]:
    about = {"onset": "half", "share": "every", "changed": changed, "control": control, **other}
    return {**about, "sessions": 40, "end": known(end), "soon": known(soon)}


WAYS = [
    way("none", "strong", 0.999, 0.94),
    way("task", "strong", 0.985, 0.971),
    way("none", "untouched", 0.805, 0.7),
    way("misplaced", "strong", 0.61, 0.57),
    way("none", "strong", 0.11, 0.12, onset="turn 3"),
]
ALERTS = {
    "enter_by_fold": {"0": 0.611, "1": 0.652},
    "none": {"sessions": 50, "fired_per_100": 84.0, "median_delay": 3.0},
    "strong": {"sessions": 50, "fired_per_100": 6.0, "median_delay": 5.0},
    "untouched": {"sessions": 50, "fired_per_100": 0.0, "median_delay": None},
}
LENGTHS = {
    "sessions": 90,
    "turns": {"alone": 0.31, "given_the_index": known(-0.124)},
    "words": {"alone": 0.2, "given_the_index": known(0.01)},
}
REPORT: dict[str, Any] = {
    "protocol": {"nesting": "no session was seen by what scores it", "intervals": "95 %"},
    "folds": [0, 1],
    "one_answer": {"answers": 300, **known(0.731, 0.02)},
    "rated": {
        "answers": 200,
        "spearman": known(0.402),
        "at_equal_length": known(None),
        "length_alone": 0.2,
    },
    "composed": {
        domain: {
            "sessions": 240,
            "low": 60,
            "spearman": known(0.95),
            "auroc_after_six": known(0.96),
            "auroc_after_three": known(0.9),
        }
        for domain in DOMAINS
    },
    "degraded": dict.fromkeys(DOMAINS, WAYS),
    "alerts": dict.fromkeys(DOMAINS, ALERTS),
    "annomi_quality": {
        "sessions": 99,
        "low_quality": 17,
        **known(0.88, 0.04),
        "repeats": [0.88, 0.86],
        "mean_of_repeats": 0.87,
    },
    "surveys": {"esconv": {"sessions": 70, "spearman": known(0.09), "at_equal_turns": known(0.1)}},
    "confounds": dict.fromkeys((*DOMAINS, "customer-service"), LENGTHS),
}


def row(section: str, start: str) -> str:
    return next(line for line in section.splitlines() if line.startswith(f"| {start}"))


def test_every_target_has_its_figure() -> None:
    section = low_empathy_section(REPORT)
    assert row(section, "one answer") == (
        "| one answer: Spearman of expected and labelled total | ≥ 0.74 | 0.73 | 0.71 to 0.75 | "
        "**no**, uncertain |"
    )
    composed = row(section, "composed, counselling: Spearman")
    assert composed.endswith("| ≥ 0.92 | 0.95 | 0.93 to 0.97 | yes |")
    none = "degraded, peer-support: no mechanism v"
    assert "| ≥ 0.98 | 1.00 |" in row(section, f"{none} strong, AUROC at the end")
    assert "| ≥ 0.95 | 0.94 |" in row(section, f"{none} strong, AUROC after three")
    assert row(section, f"{none} untouched, AUROC at").endswith("yes, uncertain |")
    assert row(section, f"{none} untouched, AUROC after").endswith("| **no** |")
    assert "| ≥ 80 % | 84 % | 71 to 92 | yes, uncertain |" in section
    assert "| ≤ 4.0 | 3.0 | – | yes |" in section
    assert "| ≤ 5 % | 6 % | 2 to 16 | **no**, uncertain |" in section
    assert "| ≥ 0.85 | 0.87 | 0.84 to 0.92 | yes, uncertain |" in row(section, "AnnoMI low")
    assert "| ≥ 0.30 | not measured | – | – |" in row(section, "the same at equal length")
    assert row(section, "customer-service: partial correlation of the risk with turns").endswith(
        "| ≤ 0.05 | -0.12 | -0.14 to -0.10 | **no** |"
    )
    assert "low_mi_quality" not in section


def test_lengths_of_known_empathy_and_the_memory_have_tables() -> None:
    rows = {
        "no mechanism": {"sessions": 9, "mean": {"3": 0.4, "12": 0.6}, "spearman": known(0.5)},
        "strong": {"sessions": 6, "mean": {"3": 0.2}, "spearman": known(-0.4)},
    }
    lengths = dict.fromkeys(DOMAINS, rows)
    own = {name: known(0.9) for name in ("composed", "none_v_strong_soon", "task_v_strong_soon")}
    own["none_v_untouched_end"] = known(0.7)
    own |= {"alerts": {"none": 52.0, "strong": 4.0, "untouched": 30.0}, "median_delay": None}
    memory = [
        {"memory": "risk", "prior": 0.03, "shipped": True, **own},
        {"memory": "last three", "prior": None, "shipped": False, **own, "median_delay": 3.0},
    ]
    section = shipped_section({**REPORT, "bundle": "b 1", "lengths": lengths, "memory": memory})
    assert "| peer-support | no mechanism | 9 | 0.40 | 0.60 | 0.50 (0.48 to 0.52) |" in section
    assert "| counselling | strong | 6 | 0.20 | – | -0.40 (-0.42 to -0.38) |" in section
    assert "| prior 0.03 (shipped) | 0.90 (0.88 to 0.92) |" in section
    assert section.rstrip().splitlines()[-1].endswith("| 52 | 4 | 30 | 3.0 |")
    assert "Whether length itself moves the risk is tested" in section


def test_the_other_tables_are_included() -> None:
    section = low_empathy_section(REPORT)
    assert "Folds 0, 1." in section
    assert "- nesting: no session was seen by what scores it" in section
    assert section.count("### Degraded sessions, ") == 2
    assert "| turn 3 | every | no mechanism | strong | 40 | 0.11 (0.09 to 0.13) |" in section
    assert "misplaced" not in section, "controls of that kind include other sessions"
    assert "0.61 to 0.65 by fold" in section
    assert "| counselling | untouched | 50 | 0 (0 to 7) | – |" in section
    assert "AUROC of low quality 0.87 (0.84 to 0.92) in 99 sessions" in section
    assert "| ordinary chats | 70 | 0.09 (0.07 to 0.11) | 0.10 (0.08 to 0.12) |" in section
    assert "over 200 answers" in section
    assert "| counselling | 90 | turns | 0.31 | -0.12 (-0.14 to -0.10) |" in section
    assert "will rate" not in section


def test_unmeasured_figures_are_omitted() -> None:
    section = low_empathy_section(REPORT)
    assert "### Plain means" not in section
    assert "### Empathic answers that do not fit" not in section


def with_means() -> dict[str, Any]:
    swaps = {"sessions": 80, "after_six": known(0.63), "after_three": known(0.58)}
    names = ("composed", "degraded", "confounds")
    report = {**copy.deepcopy(REPORT), "misplaced": dict.fromkeys(DOMAINS, swaps)}
    plain = {name: copy.deepcopy(REPORT[name]) for name in names}
    for value, span in ((0.71, "all turns"), (0.72, "last five"), (0.73, "last three")):
        own = copy.deepcopy(plain)
        own["composed"]["counselling"]["auroc_after_six"] = known(value)
        own["confounds"]["counselling"]["turns"]["alone"] = value - 1
        report.setdefault("plain", {})[span] = own
    return report


def test_swapped_answers_have_a_table() -> None:
    section = low_empathy_section(with_means())
    shown = section.split("### Empathic answers that do not fit")[1].split("###")[0]
    assert "| counselling | 80 | 0.58 (0.56 to 0.60) | 0.63 (0.61 to 0.65) |" in shown


def test_plain_means_are_compared_with_the_risk() -> None:
    section = low_empathy_section(with_means()).split("### Plain means")[1].split("### ")[0]
    assert "| `low_empathy_risk` | mean of all turns | mean of last five | mean of last" in section
    assert row(section, "composed, counselling: AUROC of low sessions after six").endswith(
        "| 0.96 (0.94 to 0.98) | 0.71 (0.69 to 0.73) | 0.72 (0.70 to 0.74) | 0.73 (0.71 to 0.75) |"
    )
    none = row(section, "degraded, peer-support, half, every: no mechanism v strong, AUROC after")
    assert none.count("0.94 (0.92 to 0.96)") == 4
    assert row(section, "counselling: Spearman with turns |").endswith(
        "| 0.31 | -0.29 | -0.28 | -0.27 |"
    )
    assert "swapped answers" not in section, "the means were not measured on these sessions"


def test_the_outcome_of_motivational_interviewing_is_one_of_the_targets() -> None:
    outcomes = {"outcomes": {"low_mi_quality": {"auroc": known(0.94)}}}
    found = row(low_empathy_section(REPORT, outcomes), "the same: AUROC of the outcome")
    assert "| ≥ 0.93 | 0.94 | 0.92 to 0.96 | yes, uncertain |" in found


def test_targets_are_checked_unrounded_and_bounds_are_inclusive() -> None:
    assert Row("x", 0.92, 0.9199).verdict() == "**no**"
    assert Row("x", 0.05, -0.06, (-0.2, -0.055), most=True).verdict() == "**no**"
    assert Row("x", 0.05, -0.04, (-0.2, 0.01), most=True).verdict() == "yes, uncertain"


def test_the_section_is_first_and_may_be_missing(tmp_path: Path) -> None:
    part = document.PARTS[0]
    missing = document.page(part, {}, tmp_path)
    first = missing.split("\n## ")[1]
    assert first.startswith(
        "Low empathy\n\nNot measured yet: `python -m models.construct evaluate`"
    )
    page = document.page(part, {"construct": REPORT}, tmp_path)
    assert document.PAGE_LINK.sub("](../", low_empathy_section(REPORT)) in page


def test_a_file_of_another_shape_is_included_unchanged(tmp_path: Path) -> None:
    other = copy.deepcopy(REPORT)
    del other["alerts"]
    assert "### composed" in document.page(document.PARTS[0], {"construct": other}, tmp_path)


def test_a_shipped_bundle_has_the_targets_that_need_no_fold() -> None:
    folds = ("annomi_quality", "rated", "surveys", "folds", "protocol")
    report = {name: value for name, value in REPORT.items() if name not in folds}
    text = shipped_section({**report, "bundle": "rapport-minilm 9.9.9"})
    assert "Bundle rapport-minilm 9.9.9." in text
    assert "one answer: Spearman" in text
    assert "AnnoMI" not in text
    assert "rated exchanges" not in text
