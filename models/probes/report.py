"""Results of the context probe: counts with intervals, and the published figures."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from scipy.stats import binomtest

from models.data.dialogues import TRAINING_FILES
from models.data.phrases import PROBE_PHRASES
from models.labels import RATIONALE_ORDER
from models.probes import clusters
from models.probes.cases import LEES, Case, head_of
from models.probes.scorers import Levels, LevelScorer

Figures = dict[str, Any]

PUBLISHED: Final[dict[str, Any]] = {
    "source": "Lee et al. 2023, Table 3: EPITOME's model, 1,000 dialogues each, phrases of Table 2",
    "persona_chat": {"emotional_reactions": 997, "interpretations": 695, "explorations": 969},
    "ubuntu": {"emotional_reactions": 992, "interpretations": 444, "explorations": 994},
    "i_feel_the_same_way_alone": {"persona_chat": 990, "ubuntu": 989},
    "n": 1000,
}

PAIRS = {
    **{head: (f"task/{head}", f"bad_news/{head}") for head in RATIONALE_ORDER},
    "sympathy": ("good_news/sympathy", "bad_news/emotional_reactions"),
    "cheers": ("bad_news/cheers", "good_news/cheers"),
}
"""Pairs of misplaced and fitting conditions for a balanced accuracy."""
FOOLED = tuple(misplaced for misplaced, _ in PAIRS.values())
FITTING = tuple(dict.fromkeys(fitting for _, fitting in PAIRS.values()))
LEES_PHRASES = {head: frozenset(phrases[:LEES]) for head, phrases in PROBE_PHRASES.items()}


def measure(scorer: LevelScorer, given: Sequence[Case]) -> Figures:
    """Run the scorer on the cases; count empathic classifications by condition and its factors."""
    distinct = {case.words: case.turns for case in given}
    row_of = {words: row for row, words in enumerate(distinct)}
    levels = scorer.levels(list(distinct.values()))
    return figures(given, [called(case, levels[row_of[case.words]]) for case in given])


def called(case: Case, levels: Levels) -> bool:
    """Whether the case's mechanism has a level above none; `levels` [3]."""
    return bool(levels[RATIONALE_ORDER.index(head_of(case.mechanism))] > 0)


def figures(given: Sequence[Case], empathic: Sequence[bool]) -> Figures:
    """All counts, from the cases and whether each was classified as empathic."""
    conditions: dict[str, list[tuple[Case, bool]]] = {}
    for case, yes in zip(given, empathic, strict=True):
        conditions.setdefault(f"{case.condition}/{case.mechanism}", []).append((case, yes))
    result: Figures = {}
    for title, placement in (
        ("balanced_accuracy", ""),
        ("balanced_accuracy_phrase_alone", "alone"),
    ):
        result[title] = {
            name: balanced(*(_yes(conditions.get(key, []), placement) for key in pair))
            for name, pair in PAIRS.items()
        }
    counted = {name: _condition(own) for name, own in conditions.items()}
    return together(counted) | result | {"conditions": counted}


def together(conditions: Figures) -> Figures:
    """Misplaced and fitting phrases of all mechanisms, with phrases resampled."""
    counts = clusters.phrase_counts
    return {
        "fooled": clusters.share(counts(conditions, FOOLED)),
        "fooled_lees_phrases": clusters.share(counts(conditions, FOOLED, "by_phrase", _of_lee)),
        "recall": clusters.share(counts(conditions, FITTING)),
    }


def _yes(judged: list[tuple[Case, bool]], placement: str = "") -> list[bool]:
    return [yes for case, yes in judged if not placement or case.placement == placement]


def _phrase_of(case: Case) -> str:
    """The origin of the phrase: Lee et al. or this project."""
    return "lee" if case.phrase in LEES_PHRASES[head_of(case.mechanism)] else "added"


def _condition(judged: list[tuple[Case, bool]]) -> Figures:
    splits: dict[str, Callable[[Case], str]] = {
        "by_source": lambda case: case.source,
        "by_placement": lambda case: case.placement,
        "by_turns_before": lambda case: str(len(case.turns) - 1),
        "by_phrases": _phrase_of,
        "by_phrase": lambda case: case.phrase,
    }
    result = {"fits": judged[0][0].fits, **_share(yes for _, yes in judged)}
    unseen = [(case, yes) for case, yes in judged if case.phrase and is_unseen(case.source)]
    if unseen:
        result["by_phrase_unseen"] = {
            phrase: _share(yes for case, yes in unseen if case.phrase == phrase)
            for phrase in dict.fromkeys(case.phrase for case, _ in unseen)
        }
    for name, key in splits.items():
        groups: dict[str, list[bool]] = defaultdict(list)
        for case, yes in judged:
            groups[key(case)].append(yes)
        inserted = bool(judged[0][0].phrase)
        if all(groups) and (inserted or not name.startswith("by_phrase")):
            result[name] = {group: _share(own) for group, own in groups.items()}
    return result


def is_unseen(source: str) -> bool:
    """Whether a service corpus is reserved for probes.

    >>> is_unseen("uss_ccpe"), is_unseen("uss_sgd"), is_unseen("empathetic_dialogues")
    (True, False, False)
    """
    return source.startswith("uss_") and f"{source}.jsonl.gz" not in TRAINING_FILES


def _share(answers: Iterable[bool]) -> Figures:
    """Count, share 0-1 and its Wilson interval (95 %)."""
    counts = Counter(answers)
    yes, n = counts[True], counts.total()
    if not n:
        return {"called": 0, "n": 0, "share": None, "interval": None}
    found = binomtest(yes, n).proportion_ci(0.95, method="wilson")
    return {"called": yes, "n": n, "share": yes / n, "interval": [found.low, found.high]}


def balanced(misplaced: Sequence[bool], fitting: Sequence[bool]) -> Figures:
    """Mean of specificity and recall: 0.5 for a constant answer.

    The interval combines the two Wilson intervals (Newcombe 1998, method 10).
    """
    wrong, right = _share(misplaced), _share(fitting)
    if not (wrong["n"] and right["n"]):
        return {"value": None, "interval": None}
    p, q = 1 - wrong["share"], right["share"]
    value = (p + q) / 2
    low = math.hypot(wrong["interval"][1] - wrong["share"], q - right["interval"][0]) / 2
    high = math.hypot(wrong["share"] - wrong["interval"][0], right["interval"][1] - q) / 2
    return {"value": value, "interval": [value - low, value + high]}


def store(path: Path, name: str, entry: Figures, probe: Figures) -> Figures:
    """Store one scorer's entry in the file; the others are kept unless the probe has changed."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    scorers = known.get("scorers", {}) if known.get("probe") == probe else {}
    content = {"probe": probe, "published": PUBLISHED, "scorers": {**scorers, name: entry}}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return content


NAMES = {
    "task": "phrase in a service dialogue",
    "task_brief": "the same, one turn known",
    "task_plain": "service dialogue, no phrase",
    "good_news": "after good news",
    "bad_news": "after bad news",
    "bad_later": "after bad news, two turns later",
    "epitome": "held-out EPITOME response",
    "emotional_reactions": "ER",
    "interpretations": "IP",
    "explorations": "EX",
    "cheers": "congratulations",
    "sympathy": "sympathy",
}
NOTHING = "–"
EXPECTED = {False: "low", True: "high", None: "low"}


def markdown(content: Figures) -> str:
    """One column per scorer, one row per condition: per cent empathic with 95 % intervals."""
    scorers: dict[str, Figures] = content["scorers"]
    rows = [
        ["called empathic, %", "wanted", *scorers, "EPITOME model [1]"],
        ["---"] * (3 + len(scorers)),
        *_together(scorers),
        *_lees(scorers),
        *_conditions(scorers),
        *_balanced_rows(scorers),
        *_corpora(scorers),
    ]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", NOTES])


NOTES = f"""\
Intervals resample phrases: a condition repeats seven phrases of a mechanism, or six
congratulations, and cases with the same phrase are correlated. With so few phrases (three per
mechanism for Lee et al.'s own) an interval is rough and rather too narrow. Rows marked * have no
phrases, or no counts per phrase: Wilson intervals, which assume independent cases. The service
corpus reserved for probes is uss_ccpe. "Fooled" pools phrases in service dialogues, sympathy after
good news and congratulations after bad news.

[1] {PUBLISHED["source"]}: PersonaChat / Ubuntu.
[2] What the contrast training sees of the service corpus."""


def _of_lee(family: str, phrase: str) -> bool:
    return phrase in LEES_PHRASES.get(family, frozenset())


def _added(family: str, phrase: str) -> bool:
    return not _of_lee(family, phrase)


TASK = tuple(f"task/{head}" for head in RATIONALE_ORDER)


def _together(scorers: dict[str, Figures]) -> list[list[str]]:
    """Misplaced phrases: all, the papers' own, the added, and the unseen corpus."""

    def row(title: str, wanted: str, *given: Any) -> list[str]:
        cells = [
            _cell(clusters.share(clusters.phrase_counts(entry["conditions"], *given)))
            for entry in scorers.values()
        ]
        return [title, wanted, *cells, ""]

    return [
        row("**fooled, all together**", "low", FOOLED),
        row("fooled, Lee et al.'s own phrases", "low", FOOLED, "by_phrase", _of_lee),
        row("fooled, phrases added here", "low", FOOLED, "by_phrase", _added),
        row("**recall, all together**", "high", FITTING),
        row("recall, Lee et al.'s own phrases", "high", FITTING, "by_phrase", _of_lee),
    ]


def _lees(scorers: dict[str, Figures]) -> list[list[str]]:
    """Lee et al.'s own phrases in service dialogues, with their published figures."""
    rows = []
    for name in TASK:
        head = name.split("/")[1]
        cells = [
            _cell(
                clusters.share(
                    clusters.phrase_counts(entry["conditions"], [name], "by_phrase", _of_lee)
                )
            )
            for entry in scorers.values()
        ]
        counts = [PUBLISHED[corpus][head] for corpus in ("persona_chat", "ubuntu")]
        published = " / ".join(f"{count / PUBLISHED['n']:.1%}"[:-1] for count in counts)
        title = f"{NAMES[head]}, Lee et al.'s phrase in a service dialogue"
        rows.append([title, "low", *cells, published])
    return rows


def _conditions(scorers: dict[str, Figures]) -> list[list[str]]:
    names = dict.fromkeys(name for entry in scorers.values() for name in entry["conditions"])
    rows = []
    for name in sorted(names, key=lambda name: EXPECTED[_any(scorers, name)["fits"]] == "high"):
        condition, mechanism = name.split("/")
        with_phrases = "by_phrase" in _any(scorers, name)
        cells = [
            _cell(clusters.share(clusters.phrase_counts(entry["conditions"], [name])))
            if with_phrases
            else _cell(entry["conditions"].get(name))
            for entry in scorers.values()
        ]
        title = f"{NAMES[mechanism]}, {NAMES[condition]}" + ("" if with_phrases else " *")
        rows.append([title, EXPECTED[_any(scorers, name)["fits"]], *cells, ""])
    return rows


def _balanced_rows(scorers: dict[str, Figures]) -> list[list[str]]:
    rows = []
    for name, (misplaced, fitting) in PAIRS.items():
        cells = []
        for entry in scorers.values():
            sides = (
                clusters.phrase_counts(entry["conditions"], [side]) for side in (misplaced, fitting)
            )
            wrong, right = (next(iter(side.values()), {}) for side in sides)
            cells.append(_cell(clusters.balanced(wrong, right), "value"))
        rows.append([f"balanced accuracy, {NAMES[name]}", "high", *cells, ""])
    return rows


def _corpora(scorers: dict[str, Figures]) -> list[list[str]]:
    """Misplaced phrases by service corpus, the unseen one first."""
    rows = []
    for keep, words in ((None, "phrases"), (_of_lee, "Lee et al.'s phrases")):
        cells = [_cell(_unseen(entry, keep)) for entry in scorers.values()]
        if any(cell != NOTHING for cell in cells):
            rows.append([f"**{words} in the corpus reserved for probes**", "low", *cells, ""])
    sources = sorted(
        {source for entry in scorers.values() for source in _by_corpus(entry)},
        key=lambda source: (not is_unseen(source), source),
    )
    for source in sources:
        cells = [_cell(_by_corpus(entry).get(source)) for entry in scorers.values()]
        known = "never" if is_unseen(source) else "other dialogues of it"
        rows.append([f"phrases in {source} [2: {known}] *", "low", *cells, ""])
    return rows


def _unseen(entry: Figures, keep: Callable[[str, str], bool] | None) -> Figures | None:
    """The unseen corpus with phrases resampled; None for entries without counts per phrase."""
    counts = clusters.phrase_counts(entry["conditions"], TASK, "by_phrase_unseen", keep)
    return clusters.share(counts) if counts else None


def _by_corpus(entry: Figures) -> dict[str, Figures]:
    """Misplaced phrases in service dialogues, all mechanisms together, by corpus."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for head in RATIONALE_ORDER:
        found = entry["conditions"].get(f"task/{head}", {}).get("by_source", {})
        for source, share in found.items():
            counts[source][0] += share["called"]
            counts[source][1] += share["n"]
    return {
        source: _share([True] * called + [False] * (n - called))
        for source, (called, n) in counts.items()
    }


def _any(scorers: dict[str, Figures], name: str) -> Figures:
    found = (entry["conditions"].get(name) for entry in scorers.values())
    return next(figures for figures in found if figures)


def phrases_markdown(entry: Figures) -> str:
    """One row per phrase: per cent empathic where it does not fit and where it does."""
    lines = ["| phrase | origin | does not fit | fits |", "| --- | --- | --- | --- |"]
    for name, pair in PAIRS.items():
        bad, good = (entry["conditions"].get(key, {}).get("by_phrase", {}) for key in pair)
        for phrase in bad:
            whose = "Lee et al." if phrase in LEES_PHRASES[head_of(name)] else "added"
            cells = f"{_cell(bad[phrase])} | {_cell(good.get(phrase))}"
            lines.append(f"| {NAMES[name]}: {phrase} | {whose} | {cells} |")
    return "\n".join(lines)


def _cell(found: Figures | None, key: str = "share") -> str:
    if not found or found[key] is None:
        return NOTHING
    low, high = found["interval"]
    return f"{100 * found[key]:.1f} ({100 * low:.1f}–{100 * high:.1f})"
