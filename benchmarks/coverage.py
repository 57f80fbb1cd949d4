"""How often intervals hold the truth: every estimator on many synthetic platforms.

``python -m benchmarks.coverage --simulations 200`` writes the table in
docs/analytics-methods.md. A 95 % interval should hold the truth in 92 to 98 of 100 platforms (the
range that chance allows with 200), and find something in about 5 of 100 where nothing is. Where a
world gives another explanation of a change, no estimate is the right answer; it is counted apart.

The first platform's estimates stand in the table, too: drawing that platform again shows whether
the table is about the estimators as they are.

``--worlds NAME…`` and ``--estimators WORDS`` draw a part, and replace its lines of the table.
"""

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from stream_app.analytics.questions import (
    associations,
    drift,
    expressed_perceived,
    over_time,
    pairs,
    service_levels,
)
from stream_app.analytics.questions.clustered import NotEstimable, Term, gee
from stream_app.analytics.questions.frames import DAYS_A_MONTH
from stream_app.analytics.questions.head_labels import HEAD, PERCEIVED
from stream_app.analytics.questions.service_levels import Change
from stream_app.demo.simulator import ALERT_LOGIT, Platform, World, simulate

DOCUMENT: Final = Path("docs/analytics-methods.md")
BEGIN: Final = "<!-- coverage: begin -->"
END: Final = "<!-- coverage: end -->"
BIASED: Final = " **biased**"
SIGNIFICANT: Final = 0.05
LEAST: Final = 0.92
MOST: Final = 0.98
INDEX: Final = "empathy_index"
EVENT: Final = 13.0
"""Month of the training and of the drift."""

BASE: Final = World(counsellors=40, months=24, joining_months=10, sessions_a_month=2.5, turns=3)
LEAVING: Final = replace(BASE, counsellors=60, leaving=0.06, leaving_by_level=-1.0)
EFFECTS: Final = replace(
    BASE,
    likes={"emotional_reactions": (0.2, 0.4)},
    replies={"explorations": (0.2, 0.4)},
    follows={"interpretations": 0.5},
    rating={"interpretations": 0.3},
    training=EVENT,
    training_jump=0.15,
    training_haste=-0.5,
    drift=EVENT,
    drift_share=0.3,
    perceived_by_question=0.05,
    pair=0.2,
    alerts_by_phone=0.5,
    errors_by_phone=0.2,
    rated=0.2,
)
UNCLEAN: Final[Mapping[str, World]] = {
    "model on the date": replace(BASE, training=EVENT, new_model=EVENT, new_model_shift=0.2),
    "one stray": replace(BASE, training=EVENT, new_model=EVENT, new_model_shift=0.2, strays=1),
    "shocks .02": replace(BASE, training=EVENT, shocks=0.04),
    "shocks .04": replace(BASE, training=EVENT, shocks=0.08),
    "season": replace(BASE, training=EVENT, season=0.08),
    "season, 14 months": replace(
        BASE, training=7.0, season=0.08, months=14, joining_months=2, sessions_a_month=4
    ),
    "phone to chat": replace(BASE, training=EVENT, phone_level=-0.2, phone_leaves=24.0),
    "volume doubles": replace(BASE, training=EVENT, volume=2.0),
    "unequal volumes": replace(BASE, training=EVENT, unequal=1.0),
    "missing weeks": replace(BASE, training=EVENT, missing_weeks=0.2, shocks=0.04),
    "few counsellors": replace(BASE, training=EVENT, counsellors=10, sessions_a_month=6),
}
"""Nobody changes, and the world is not clean; shifts are of levels (0-2), twice the index."""
STEP: Final = replace(BASE, training=EVENT, training_jump=0.1, shocks=0.04)
WORLDS: Final[Mapping[str, World]] = {
    "slopes": replace(LEAVING, slopes={2024: 0.02}),
    "few": replace(BASE, counsellors=12, slopes={2024: 0.02}),
    "effects": EFFECTS,
    "nothing": replace(BASE, training=EVENT, drift=EVENT, rated=0.2),
    "leaving": LEAVING,
    "step and shocks": STEP,
    **UNCLEAN,
}


@dataclass(frozen=True, slots=True)
class Check:
    """An estimator and the truth in each world where it is tried.

    ``biased``: shown because it must fail. ``bounded``: 0 is the end of its range, so that
    intervals hold it too often.
    """

    name: str
    estimate: Callable[[Platform], Term]
    truths: Mapping[str, float]
    biased: bool = False
    bounded: bool = False


class Tally:
    """Counts of ``n`` intervals: how many held the truth, and how many excluded 0.

    ``first``: what the first platform gave. ``refused``: platforms without an estimate.
    """

    def __init__(self) -> None:
        self.first: str | None = None
        self.refused = 0
        self.held = 0
        self.found = 0
        self.n = 0
        self.values: list[float] = []

    def add(self, term: Term | None, truth: float) -> None:
        """Count one platform; None: there is no estimate, for a reason."""
        if self.first is None:
            self.first = shown(term)
        if term is None:
            self.refused += 1
            return
        self.n += 1
        self.held += term.low <= truth <= term.high
        self.found += term.p < SIGNIFICANT
        self.values.append(term.value)


def shown(term: Term | None) -> str:
    """An estimate as the table shows it."""
    return "none" if term is None else f"{term.value:.3g}"


def _within(platform: Platform) -> Term:
    return over_time.within_fit(platform.frames.sessions, INDEX).terms["months"]


def _mixed(platform: Platform) -> Term:
    return over_time.mixed_fit(over_time.monthly(platform.frames.sessions, INDEX), INDEX)


def _pooled(platform: Platform) -> Term:
    return over_time.pooled_fit(platform.frames.sessions, INDEX).terms["months"]


def _of_turns(kind: str, term: str) -> Callable[[Platform], Term]:
    def estimate(platform: Platform) -> Term:
        table = associations.turn_table(platform.frames)
        design = associations.turn_design(table, with_length=True)
        who = table["counsellor"], "poisson"
        return gee(table[kind], design, *who, clients=table["client"]).terms[term]

    return estimate


def _of_sessions(kind: str, term: str, family: str) -> Callable[[Platform], Term]:
    def estimate(platform: Platform) -> Term:
        table = associations.session_table(platform.frames)
        value = table[kind] if family == "gaussian" else table[kind].fillna(0.0)
        design = associations.session_design(table)
        who = table["counsellor"], family
        return gee(value, design, *who, clients=table["client"]).terms[term]

    return estimate


def _at(platform: Platform) -> Change:
    months = platform.world.training or EVENT
    return Change(pd.Timestamp(platform.world.begins + timedelta(days=months * DAYS_A_MONTH)))


def _jump(platform: Platform) -> Term:
    change = _at(platform)
    return service_levels.changed(platform.frames.sessions, INDEX, change)[0].terms["after"]


def _compared(platform: Platform) -> Term:
    change = replace(_at(platform), trained="north")
    return service_levels.changed(platform.frames.sessions, INDEX, change)[0].terms["after"]


def _haste(platform: Platform) -> Term:
    table = service_levels.alert_table(platform.frames)
    fit, _ = service_levels.changed(table, "acknowledge_minutes", _at(platform))
    return fit.terms["after"]


def _pair(platform: Platform) -> Term:
    table = pairs.declared(platform.frames.sessions, platform.attributes)
    return pairs.interaction(table, INDEX, "a").terms["both"]


def _perceived(platform: Platform) -> Term:
    table = expressed_perceived.turn_table(platform.frames)
    occurs = expressed_perceived.intents_of(table)["strategy: question"]
    known = occurs.notna()
    some = table[known]
    score, design = some[f"{PERCEIVED}engagement"], occurs[known].to_frame("x")
    return gee(score, design, some["counsellor"], clients=some["client"]).terms["x"]


def _alerts(platform: Platform) -> Term:
    sessions = platform.frames.sessions
    alerted = sessions["session_id"].isin(set(platform.frames.alerts["session_id"])).astype(float)
    phone = (sessions["channel"] == "phone").astype(float).to_frame("phone")
    return gee(alerted, phone, sessions["counsellor"], clients=sessions["client"]).terms["phone"]


def _errors(platform: Platform) -> Term:
    rated = platform.frames.ratings.merge(platform.frames.sessions, on="session_id")
    wrong = (rated["model"] != rated["value"]).astype(float)
    phone = (rated["channel"] == "phone").astype(float).to_frame("phone")
    return gee(wrong, phone, rated["counsellor"], clients=rated["client"]).terms["phone"]


def _stability(platform: Platform) -> Term:
    facts = platform.frames.sessions[["session_id", "counsellor", "started_at"]]
    turns = platform.frames.turns.merge(facts, on="session_id")
    known = turns[f"{HEAD}strategy"].notna()
    some = turns[known]
    at = platform.world.begins + timedelta(days=EVENT * DAYS_A_MONTH)
    current = (some["started_at"] >= at).to_numpy()
    return Term(
        *drift.stability(some[f"{HEAD}strategy"], current, some["counsellor"], platform.world.seed)
    )


def _calibrated(platform: Platform) -> Term:
    table = drift.rated_table(platform.frames)
    gap = table["right"] - table["probability"]
    return gee(gap, table[[]], table["counsellor"], clients=table["client"]).terms["intercept"]


def _risk(platform: Platform) -> Term:
    table = drift.risk_table(platform.frames, "risk.dissatisfied")
    gap = table["bad"] - table["risk.dissatisfied"]
    return gee(gap, table[[]], table["counsellor"], clients=table["client"]).terms["intercept"]


def _logistic(value: float) -> float:
    return float(1 / (1 + np.exp(-value)))


def true_index(share: float) -> float:
    """The index of the strategies after ``share`` of them became questions; a tenth abstains."""
    before = np.array([0.3, 0.3, 0.4])
    after = (1 - share) * before + share * np.array([1, 0, 0])
    return float(0.9 * ((after - before) * np.log(after / before)).sum())


NULL: Final = dict.fromkeys(UNCLEAN, 0.0)
BOTH: Final = ("effects", "nothing")
CHECKS: Final = (
    Check(
        "over-time: change within counsellors",
        _within,
        {"slopes": 0.01, "few": 0.01, "leaving": 0.0, "nothing": 0.0, **NULL},
    ),
    Check("over-time: mixed model", _mixed, {"slopes": 0.01, "leaving": 0.0}),
    Check("over-time: pooled trend (naive)", _pooled, {"leaving": 0.0}, biased=True),
    Check(
        "associations: likes of strong emotional reactions (log)",
        _of_turns("like", "emotional_reactions:strong"),
        dict(zip(BOTH, (0.4, 0.0), strict=True)),
    ),
    Check(
        "associations: replies to strong explorations (log)",
        _of_turns("reply", "explorations:strong"),
        dict(zip(BOTH, (0.4, 0.0), strict=True)),
    ),
    Check(
        "associations: follows by interpretations (log odds)",
        _of_sessions("follow", "interpretations", "binomial"),
        dict(zip(BOTH, (0.5, 0.0), strict=True)),
    ),
    *(
        Check(
            f"associations: follows by {name.replace('_', ' ')} (log odds)",
            _of_sessions("follow", name, "binomial"),
            {"nothing": 0.0},
        )
        for name in ("emotional_reactions", "explorations")
    ),
    Check(
        "associations: rating by interpretations",
        _of_sessions("rating", "interpretations", "gaussian"),
        dict(zip(BOTH, (0.3, 0.0), strict=True)),
    ),
    Check("pairs: interaction", _pair, dict(zip(BOTH, (0.1, 0.0), strict=True))),
    Check("expressed-perceived: difference", _perceived, dict(zip(BOTH, (0.05, 0.0), strict=True))),
    Check(
        "service-levels: change of the index at a date",
        _jump,
        {"effects": 0.075, "nothing": 0.0, "step and shocks": 0.05, **NULL},
    ),
    Check(
        "service-levels: change of a trained team compared with the others",
        _compared,
        {"shocks .04": 0.0, "season": 0.0, "season, 14 months": 0.0, "model on the date": 0.0},
    ),
    Check(
        "service-levels: change of the time to acknowledge (log)",
        _haste,
        dict(zip(BOTH, (-0.5, 0.0), strict=True)),
    ),
    Check(
        "drift: population stability index",
        _stability,
        dict(zip(BOTH, (true_index(0.3), 0.0), strict=True)),
        bounded=True,
    ),
    Check("drift: calibration against ratings", _calibrated, {"nothing": 0.0}),
    Check("drift: calibration against outcomes", _risk, {"nothing": 0.0}),
    Check(
        "fairness: alerts by channel",
        _alerts,
        {"effects": _logistic(ALERT_LOGIT + 0.5) - _logistic(ALERT_LOGIT), "nothing": 0.0},
    ),
    Check("fairness: errors by channel", _errors, dict(zip(BOTH, (0.2, 0.0), strict=True))),
)

Key = tuple[str, str]
"""Name of the check and of the world."""
Task = tuple[str, int, str]
"""World, number of the platform, and a part of the names of the estimators that are tried."""


def one(task: Task) -> list[tuple[Key, Term | None]]:
    """The checks of a world on one platform."""
    world, seed, estimators = task
    platform = simulate(replace(WORLDS[world], seed=seed))
    return [
        ((check.name, world), _tried(check, platform))
        for check in CHECKS
        if world in check.truths and estimators in check.name
    ]


def _tried(check: Check, platform: Platform) -> Term | None:
    try:
        return check.estimate(platform)
    except NotEstimable:
        return None


def run(
    simulations: int,
    processes: int = 1,
    worlds: Iterable[str] = tuple(WORLDS),
    estimators: str = "",
) -> dict[Key, Tally]:
    """Draw every world so many times; the same number gives the same result.

    ``estimators``: a part of their names.
    """
    chosen = [(check, world) for check in CHECKS for world in worlds if world in check.truths]
    chosen = [(check, world) for check, world in chosen if estimators in check.name]
    tried = sorted({world for _, world in chosen}, key=list(WORLDS).index)
    tasks = [(world, seed, estimators) for world in tried for seed in range(1, simulations + 1)]
    truths = {(check.name, world): check.truths[world] for check, world in chosen}
    found = {key: Tally() for key in truths}
    for each in _computed(tasks, processes):
        for key, term in each:
            found[key].add(term, truths[key])
    return found


def _computed(tasks: list[Task], processes: int) -> Iterator[list[tuple[Key, Term | None]]]:
    if processes == 1:
        yield from map(one, tasks)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(one, tasks, chunksize=5)


def rows(found: Mapping[Key, Tally]) -> dict[Key, str]:
    """Lines of the Markdown table."""
    lines = {}
    for check in CHECKS:
        for world, truth in check.truths.items():
            key = check.name, world
            if key not in found:
                continue
            tally = found[key]
            name = f"{check.name}{BIASED}" if check.biased else check.name
            of = f"{tally.refused} of {tally.refused + tally.n}"
            begins = f"| {name} | {world} | {truth:.3g} | {tally.first} | {of} |"
            if not tally.n:
                lines[key] = f"{begins} | | |"
                continue
            low, high = proportion_confint(tally.held, tally.n, method="wilson")
            holds = f"{tally.held / tally.n:.1%} ({low:.0%}-{high:.0%})"
            lines[key] = (
                f"{begins} {np.mean(tally.values):.4f} | {holds} | {tally.found / tally.n:.1%} |"
            )
    return lines


def table(lines: Mapping[Key, str]) -> str:
    """The table as Markdown, in the order of the estimators."""
    keys = [(check.name, world) for check in CHECKS for world in check.truths]
    return "\n".join(
        [
            "| estimator | world | truth | first platform | no estimate | mean estimate "
            "| 95 % interval holds it | p < 0.05 |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
            *(lines[key] for key in keys if key in lines),
        ]
    )


def recorded(text: str) -> dict[Key, str]:
    """The lines of the table in the document."""
    lines = text.partition(BEGIN)[2].partition(END)[0].strip().splitlines()
    return {key_of(line): line for line in lines[2:]}


def key_of(line: str) -> Key:
    """The estimator and world that a line of the table is about."""
    name, world = (cell.strip() for cell in line.strip("|").split("|")[:2])
    return name.removesuffix(BIASED), world


def outside(found: Mapping[Key, Tally]) -> Iterable[str]:
    """Names of the estimators whose intervals hold the truth too rarely or too often."""
    for check in CHECKS:
        for world in check.truths:
            tally = found.get((check.name, world), Tally())
            at_bound = check.bounded and check.truths[world] == 0
            if (
                tally.n
                and not check.biased
                and not at_bound
                and not LEAST <= tally.held / tally.n <= MOST
            ):
                yield f"{check.name} ({world})"


def main() -> None:
    """Run, and write the lines of what was drawn into the document's table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage")
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=tuple(WORLDS))
    parser.add_argument("--estimators", default="", help="a part of their names")
    given = parser.parse_args()
    found = run(given.simulations, given.processes, given.worlds, given.estimators)
    text = DOCUMENT.read_text("utf-8")
    result = table(recorded(text) | rows(found))
    before, _, rest = text.partition(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{result}\n{END}{rest.partition(END)[2]}", "utf-8")
    print(table(rows(found)))
    for name in outside(found):
        print(f"outside {LEAST:.0%}-{MOST:.0%}: {name}")


if __name__ == "__main__":
    main()
