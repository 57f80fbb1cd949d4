"""The section on the empathy index and its risk, from docs/evaluation/construct.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scipy.stats import binomtest

from models.pages.outcomes import figure
from models.pages.tables import NONE, table

Content = dict[str, Any]
Limits = tuple[float, float]

HEADLINE = ("half", "every")
"""Onset and share of the degraded sessions that have targets."""
SURVEYED = {"esconv": "ordinary chats", "esconv_failed": "failed chats"}
WORDS = {
    "none": "no mechanism",
    "task": "task dialogue",
    "advice": "advice",
    "strong": "strongly empathic (control)",
    "untouched": "untouched",
}

INTRODUCTION = """\
`low_empathy_risk` is the probability that the session's recent empathy index lies below the tenth
percentile of its reference ([low-empathy.md](low-empathy.md)). Here it is evaluated on sessions of
known empathy. Figures are correlations and areas under the ROC curve from 0 to 1, not per cent; an
inverted risk has an AUROC below 0.5. The fold models here are trained with the current recipe of
`models.fit.train`; the shipped graphs, and the sections on single heads, are from the longer
training of bundle 1.6.0."""
SHIPPED_INTRODUCTION = """\
The benchmark of the section above, on sessions made of the tenth of each corpus that the bundle's
training left out (`python -m models.construct shipped`). Its encoder learned longer than those of
the folds. The weights of answers and the alert's threshold come from the folds, so the labels of
this tenth had a part in six numbers; there are fewer sessions, and intervals are wider."""
TARGET_NOTES = """\
Targets were set before the benchmark was run. Degraded sessions in this table: every counsellor
turn of the second half is replaced. "After three turns" is three counsellor turns after the onset.
"Uncertain" marks a figure whose interval contains the target. Intervals of shares are Wilson's;
the value for AnnoMI is the mean of the repetitions, its interval that of the first. Of the partial
correlations, each domain's largest in absolute value is shown."""
DEGRADED_NOTES = "AUROC of the degraded sessions against the control of the same row."
MISPLACED_NOTES = """\
Misplaced empathy: sessions of six strongly empathic EPITOME answers (labelled total of at least 3)
that have swapped their answers with another session, against the same sessions with their own.
Answers, labels and lengths are the same on both sides, so an AUROC above 0.5 can only come from the
fit of answer and post. No target was set."""
PLAIN_NOTES = """\
The same figures from plain means of the expected EPITOME totals over all, the last five and the
last three counsellor turns, without opportunities, prior, reference or change of level. A low mean
counts as a high risk."""
ALERT_NOTES = """\
Alerts of the shipped rule after the onset, in sessions whose second half is changed. Its threshold
is the lowest one at which at most five of a hundred controls of the other folds fire
({low:.2f} to {high:.2f} by fold), chosen on peer support alone. Delay: median number of counsellor
turns from the onset to the alert, in sessions with an alert."""
ANNOMI_NOTES = """\
The risk at the end of AnnoMI's sessions, declared as motivational interviewing, with whole topics
left out of the fit of weights and references: AUROC of low quality {value} in {sessions} sessions;
{repeats} by repetition. The encoder and the heads are those of the fold that left a session out,
but they were trained on other sessions of its topic."""
SURVEY_NOTES = """\
Spearman's correlation of the index at the end with the seeker's own rating of empathy, within each
file of ESConv. Seekers do not rate what the counsellor expresses, so no target was set."""
RATED_NOTES = """\
Spearman's correlation of the head `empathy` (expected rating) with the rating from 1 to 5 that
people gave, over {answers} answers of EmpatheticExchanges: {spearman}; with length held constant
{equal}. Length alone: {length}."""
RATED_CONVERSATIONS_NOTES = """\
In {one_rating} of {number} conversations all answers have the same rating, so people seem to have
rated conversations. The rating of each with the mean of the head over its answers: {spearman}; with
length held constant {equal}. Length alone: {length}."""
LENGTH_NOTES = """\
Sessions of three, six and twelve exchanges, composed of answers that people labelled as showing no
mechanism, of strongly empathic ones (labelled total of at least 3), and of any. More exchanges are
more evidence, so the risk should rise with length in the first and fall in the second; the mean
risk at the end by length, and its rank correlation with length:"""
MEMORY_NOTES = """\
The risk forgets exchanges before the session's level last changed, and the prior probability of a
change sets how soon. The same bundle on the same peer-support sessions with other priors, and with
plain means of the expected totals in place of the risk. Every row has its own alert threshold: the
lowest at which at most one in twenty of its own empathic controls fires. No row reaches all
targets: what notices a degraded session sooner ranks steady sessions worse, and alerts in more of
the untouched chats."""
CONFOUND_NOTES = """\
Spearman's correlation of the risk with measures of length over real sessions: alone, and with the
index held constant (ranks). The target of 0.05 is missed by construction where few sessions are
low: at an equal index, more exchanges make it more certain that a session is not low, which is what
a probability should say. Whether length itself moves the risk is tested on sessions of known
empathy, below."""


@dataclass(frozen=True)
class Row:
    """One figure and its target; with `most` the target is an upper bound on the absolute value."""

    what: str
    wanted: float
    value: float | None
    limits: Limits | None = None
    most: bool = False
    digits: int = 2
    unit: str = ""

    def cells(self) -> list[str]:
        """The row's cells: measure, target, result, interval, verdict."""
        sign = "≤" if self.most else "≥"
        wanted = f"{sign} {self._shown(self.wanted)}{self.unit}"
        if self.value is None:
            return [self.what, wanted, "not measured", NONE, NONE]
        span = NONE
        if self.limits is not None:
            span = " to ".join(self._shown(limit) for limit in self.limits)
        return [self.what, wanted, self._shown(self.value) + self.unit, span, self.verdict()]

    def _shown(self, value: float) -> str:
        return f"{value:.{self.digits}f}"

    def verdict(self) -> str:
        """Whether the unrounded value reaches the target."""
        if self.value is None:
            return NONE
        reached = abs(self.value) <= self.wanted if self.most else self.value >= self.wanted
        bounds = (self.wanted, -self.wanted) if self.most else (self.wanted,)
        unsure = self.limits is not None and any(
            self.limits[0] <= bound <= self.limits[1] for bound in bounds
        )
        return ("yes" if reached else "**no**") + (", uncertain" if unsure else "")


def low_empathy_section(report: Content, outcomes: Content | None = None) -> str:
    """The whole section; one target needs `outcomes`, docs/evaluation/outcomes.json."""
    numbers = ", ".join(map(str, report["folds"]))
    protocol = "\n".join(f"- {name}: {words}" for name, words in report["protocol"].items())
    misplaced, means = report.get("misplaced"), report.get("plain")
    parts = [
        INTRODUCTION,
        f"Folds {numbers}.\n\n{protocol}",
        targets(report, outcomes),
        TARGET_NOTES,
        *(
            f"### Degraded sessions, {domain}\n\n{degraded(rows)}"
            for domain, rows in report["degraded"].items()
        ),
        DEGRADED_NOTES,
        *([f"### Empathic answers that do not fit\n\n{swapped(misplaced)}"] if misplaced else []),
        *([f"### Plain means\n\n{plain(report, means)}"] if means else []),
        "### Alerts\n\n" + alerts(report["alerts"]),
        "### AnnoMI quality\n\n" + annomi(report["annomi_quality"]),
        "### Surveys of ESConv\n\n" + surveys(report["surveys"]),
        "### Rated exchanges\n\n" + rated(report["rated"]),
        "### Length\n\n" + confounds(report["confounds"]),
        *([known_lengths(report["lengths"])] if "lengths" in report else []),
    ]
    return "\n\n".join(parts)


def shipped_section(report: Content) -> str:
    """The figures of a bundle as it ships, on the conversations that its training left out."""
    misplaced, means = report.get("misplaced"), report.get("plain")
    parts = [
        f"Bundle {report['bundle']}. {SHIPPED_INTRODUCTION}",
        targets(report, None),
        *([f"### Rated exchanges, as shipped\n\n{rated(report['rated'])}"]
          if "rated" in report else []),
        *([f"### Empathic answers that do not fit, as shipped\n\n{swapped(misplaced)}"]
          if misplaced else []),
        *([f"### Length, as shipped\n\n{confounds(report['confounds'])}\n\n"
           f"{known_lengths(report['lengths'])}"] if "lengths" in report else []),
        *([f"### Memory of the risk, as shipped\n\n{memory(report['memory'])}"]
          if "memory" in report else []),
        *([f"### Plain means, as shipped\n\n{plain(report, means)}"] if means else []),
    ]  # fmt: skip
    return "\n\n".join(parts)


def targets(report: Content, outcomes: Content | None) -> str:
    """The figures with targets."""
    rows = [_row("one answer: Spearman of expected and labelled total", 0.74, report["one_answer"])]
    for domain, own in report["composed"].items():
        rows += [
            _row(f"composed, {domain}: Spearman of -risk and labelled empathy", 0.92,
                 own["spearman"]),
            _row(f"composed, {domain}: AUROC of low sessions after six answers", 0.95,
                 own["auroc_after_six"]),
            _row(f"composed, {domain}: AUROC after three answers", 0.88,
                 own["auroc_after_three"]),
        ]  # fmt: skip
    for domain, ways in report["degraded"].items():
        found = {
            (way["changed"], way["control"]): way
            for way in ways
            if (way["onset"], way["share"]) == HEADLINE
        }
        for changed, control, end, soon in (
            ("none", "strong", 0.98, 0.95),
            ("task", "strong", 0.98, 0.95),
            ("none", "untouched", 0.80, 0.75),
        ):
            way = found.get((changed, control), {})
            name = f"degraded, {domain}: {WORDS[changed]} v {control}"
            rows.append(_row(f"{name}, AUROC at the end", end, way.get("end")))
            rows.append(_row(f"{name}, AUROC after three turns", soon, way.get("soon")))
    for domain, own in report["alerts"].items():
        none, strong = own["none"], own["strong"]
        rows += [
            _share(f"alert, {domain}: degraded to no mechanism and detected", 80, none),
            Row(f"alert, {domain}: median delay in counsellor turns", 4, none["median_delay"],
                most=True, digits=1),
            _share(f"alert, {domain}: false alarms with empathic answers", 5, strong, most=True),
        ]  # fmt: skip
    if quality := report.get("annomi_quality"):
        rows.append(
            Row(
                "AnnoMI low quality, topics held out: AUROC of the risk",
                0.85,
                quality["mean_of_repeats"],
                _limits(quality),
            )
        )
    if mi := (outcomes or {}).get("outcomes", {}).get("low_mi_quality"):
        rows.append(_row("the same: AUROC of the outcome `low_mi_quality`", 0.93, mi["auroc"]))
    if ratings := report.get("rated"):
        rows += [
            _row("rated exchanges: Spearman with the rating 1-5", 0.35, ratings["spearman"]),
            _row("the same at equal length", 0.30, ratings["at_equal_length"]),
        ]
    for domain, own in report["confounds"].items():
        name, worst = max(
            (
                (name, values["given_the_index"])
                for name, values in own.items()
                if isinstance(values, dict)
            ),
            key=lambda item: abs(item[1]["value"] or 0.0),
        )
        what = f"{domain}: partial correlation of the risk with {name}, given the index"
        rows.append(Row(what, 0.05, worst["value"], _limits(worst), most=True))
    header = ["figure", "target", "ours", "95 % interval", "reached"]
    return table(header, [row.cells() for row in rows])


def _row(what: str, wanted: float, found: Content | None) -> Row:
    if found is None:
        return Row(what, wanted, None)
    return Row(what, wanted, found["value"], _limits(found))


def _limits(found: Content) -> Limits | None:
    low, high = found["low"], found["high"]
    return None if low is None or high is None else (low, high)


def _share(what: str, wanted: float, found: Content, *, most: bool = False) -> Row:
    limits = _wilson(found)
    value = found["fired_per_100"] if found["sessions"] else None
    return Row(what, wanted, value, limits, most, digits=0, unit=" %")


def _wilson(found: Content) -> Limits | None:
    """Wilson interval of the share of sessions with an alert, in per cent."""
    sessions = found["sessions"]
    if not sessions:
        return None
    fired = round(found["fired_per_100"] * sessions / 100)
    known = binomtest(fired, sessions).proportion_ci(method="wilson")
    return 100 * float(known.low), 100 * float(known.high)


def degraded(rows: list[Content]) -> str:
    """Every kind of change and its control."""
    header = [
        *("onset", "replaced", "by", "against", "sessions", "AUROC at the end (95 %)"),
        "after three turns (95 %)",
    ]
    cells = [
        [
            *(row["onset"], row["share"], WORDS[row["changed"]], row["control"]),
            *(str(row["sessions"]), figure(row["end"]), figure(row["soon"])),
        ]
        for row in rows
        if row["changed"] in WORDS
    ]
    return table(header, cells, left=4)


def swapped(found: Content) -> str:
    """Whether the risk notices answers that do not fit."""
    cells = [
        [domain, str(own["sessions"]), figure(own["after_three"]), figure(own["after_six"])]
        for domain, own in found.items()
    ]
    header = ["domain", "swapped sessions", "AUROC after three answers (95 %)", "after six (95 %)"]
    return f"{MISPLACED_NOTES}\n\n{table(header, cells)}"


def plain(report: Content, means: Content) -> str:
    """The index's risk beside plain means, figure by figure; figures that lack one are left out."""
    columns = [_named_figures(report), *(_named_figures(own) for own in means.values())]
    cells = [
        [what, *(column[what] for column in columns)]
        for what in columns[0]
        if all(what in column for column in columns)
    ]
    header = ["figure (95 %)", "`low_empathy_risk`", *(f"mean of {span}" for span in means)]
    return f"{PLAIN_NOTES}\n\n{table(header, cells)}"


def _named_figures(report: Content) -> dict[str, str]:
    """Return the measurements that the risk and the plain means have in common, by name."""
    found = {}
    for domain, own in report.get("composed", {}).items():
        name = f"composed, {domain}"
        found[f"{name}: Spearman with labelled empathy, sign changed"] = figure(own["spearman"])
        found[f"{name}: AUROC of low sessions after six answers"] = figure(own["auroc_after_six"])
        found[f"{name}: AUROC after three answers"] = figure(own["auroc_after_three"])
    for domain, own in report.get("misplaced", {}).items():
        found[f"swapped answers, {domain}: AUROC after six answers"] = figure(own["after_six"])
    for domain, rows in report.get("degraded", {}).items():
        for row in rows:
            if row["changed"] in WORDS:
                name = (
                    f"degraded, {domain}, {row['onset']}, {row['share']}: {WORDS[row['changed']]} "
                    f"v {row['control']}"
                )
                found[f"{name}, AUROC at the end"] = figure(row["end"])
                found[f"{name}, AUROC after three turns"] = figure(row["soon"])
    for domain, own in report.get("confounds", {}).items():
        for name, row in own.items():
            if isinstance(row, dict):
                what = f"{domain}: Spearman with {name}"
                found[what] = _number(row["alone"])
                found[f"{what}, index held constant"] = figure(row["given_the_index"])
    return found


def alerts(found: Content) -> str:
    """Alerts of the shipped rule."""
    cells, levels = [], []
    for domain, own in found.items():
        levels += own["enter_by_fold"].values()
        for kind, row in own.items():
            if kind in WORDS:
                limits, delay = _wilson(row), row["median_delay"]
                span = NONE if limits is None else f"{limits[0]:.0f} to {limits[1]:.0f}"
                cells.append(
                    [
                        *(domain, WORDS[kind], str(row["sessions"])),
                        f"{row['fired_per_100']:.0f} ({span})",
                        NONE if delay is None else f"{delay:.1f}",
                    ]
                )
    header = ["domain", "second half", "sessions", "alerts per 100 (95 %)", "median delay"]
    notes = ALERT_NOTES.format(low=min(levels), high=max(levels))
    return f"{notes}\n\n{table(header, cells, left=2)}"


def annomi(found: Content) -> str:
    """Low quality, topics held out."""
    return ANNOMI_NOTES.format(
        value=figure({**found, "value": found["mean_of_repeats"]}),
        sessions=found["sessions"],
        repeats=", ".join(_number(value) for value in found["repeats"]),
    )


def surveys(found: Content) -> str:
    """The index and the seekers' ratings, file by file."""
    cells = [
        [
            SURVEYED.get(name, name),
            *(str(row["sessions"]), figure(row["spearman"]), figure(row["at_equal_turns"])),
        ]
        for name, row in found.items()
    ]
    header = ["file", "chats", "Spearman (95 %)", "at equal numbers of turns (95 %)"]
    return f"{SURVEY_NOTES}\n\n{table(header, cells)}"


def rated(found: Content) -> str:
    """The head trained on ratings, by answer and by conversation."""
    said = [_rated(RATED_NOTES, found, answers=found["answers"])]
    if whole := found.get("conversations"):
        said.append(
            _rated(
                RATED_CONVERSATIONS_NOTES,
                whole,
                number=whole["number"],
                one_rating=whole["one_rating"],
            )
        )
    return "\n\n".join(said)


def _rated(notes: str, found: Content, **counted: int) -> str:
    return notes.format(
        **counted,
        spearman=figure(found["spearman"]),
        equal=figure(found["at_equal_length"]),
        length=_number(found["length_alone"]),
    )


def confounds(found: Content) -> str:
    """Partial correlations that test whether the risk measures length."""
    cells = [
        [domain, str(own["sessions"]), name, _number(row["alone"]), figure(row["given_the_index"])]
        for domain, own in found.items()
        for name, row in own.items()
        if isinstance(row, dict)
    ]
    header = ["domain", "sessions", "measure", "alone", "given the index (95 %)"]
    return f"{CONFOUND_NOTES}\n\n{table(header, cells)}"


def known_lengths(found: Content) -> str:
    """Whether more exchanges make the risk surer in the right direction."""
    lengths = [int(n) for own in found.values() for row in own.values() for n in row["mean"]]
    columns = [str(length) for length in sorted(set(lengths))]
    cells = [
        [
            *(domain, group, str(row["sessions"])),
            *(_number(row["mean"].get(length)) for length in columns),
            figure(row["spearman"]),
        ]
        for domain, own in found.items()
        for group, row in own.items()
    ]
    header = [
        *("domain", "answers", "sessions"),
        *(f"{length} exchanges" for length in columns),
        "Spearman with length (95 %)",
    ]
    return f"{LENGTH_NOTES}\n\n{table(header, cells, left=2)}"


def memory(rows: list[Content]) -> str:
    """The figures of longer and shorter memories."""
    cells = [
        [
            f"plain mean, {row['memory']}"
            if row["prior"] is None
            else f"prior {row['prior']:g}" + (" (shipped)" if row["shipped"] else ""),
            *(
                figure(row[name])
                for name in (
                    "composed",
                    "none_v_strong_soon",
                    "task_v_strong_soon",
                    "none_v_untouched_end",
                )
            ),
            *(f"{row['alerts'][kind]:.0f}" for kind in ("none", "strong", "untouched")),
            NONE if row["median_delay"] is None else f"{row['median_delay']:.1f}",
        ]
        for row in rows
    ]
    header = [
        "memory",
        "composed: Spearman, sign changed",
        "no mechanism v strong, three turns",
        "task v strong, three turns",
        "no mechanism v untouched, end",
        "alerts per 100: no mechanism",
        "control",
        "untouched",
        "median delay",
    ]
    return f"{MEMORY_NOTES}\n\n{table(header, cells)}"


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"
