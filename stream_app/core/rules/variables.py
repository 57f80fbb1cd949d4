"""The variables of rules: name, type, unit, and how each is computed from a session.

If a variable is absent (``read`` returns None), its comparison is unknown, and an unknown condition
does not hold. ``docs/rules.md`` lists this catalogue.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import Enum
from functools import cached_property
from typing import Final

from msgspec import Struct, structs

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures.aggregates import MILLION, RECENT, Aggregates, Contribution, Summary
from stream_app.core.measures.baselines import Baseline
from stream_app.core.measures.catalogue import (
    LEVEL,
    LEVELS,
    NO_EXCHANGE,
    RISK,
    SHARE,
    TURNS,
    Measure,
    Use,
    used,
)
from stream_app.core.measures.empathy import (
    EmpathyModel,
    EmpathySummary,
    channel_reference,
    session_empathy,
)
from stream_app.core.measures.empathy_words import Evidence, evidence, reference
from stream_app.core.measures.exchanges import Exchanges
from stream_app.core.measures.heads import PERCEIVED, SATISFACTION
from stream_app.core.measures.watch import STEP, Facts, Watch

Value = float | int | bool | str
OUTCOMES: Final = ("chat_failed", "low_satisfaction", "low_mi_quality")
CLIENT_TALK: Final = ("change", "neutral", "sustain")


class Reading:
    """Inputs of the rules for one session at one moment; expensive ones are computed once.

    ``failures``: how often expressions, by their source, failed to evaluate. ``exchanges``,
    ``own_turns``: of the counsellor who speaks.
    """

    def __init__(
        self,
        aggregates: Aggregates,
        watch: Watch,
        facts: Facts,
        risk: float | None,
        model: EmpathyModel | None,
        clock: datetime | None,
        exchanges: Exchanges | None = None,
        outcomes: Mapping[str, float] | None = None,
        catalogue: "Catalogue | None" = None,
        failures: Counter[str] | None = None,
        own_turns: int | None = None,
    ) -> None:
        self.aggregates = aggregates
        self.watch = watch
        self.facts = facts
        self.risk = risk
        self.model = model
        self.clock = clock
        self.exchanges = exchanges or Exchanges()
        self._own_turns = own_turns
        self.outcomes = outcomes or {}
        self.failures: Counter[str] = Counter() if failures is None else failures
        self._catalogue = CATALOGUE if catalogue is None else catalogue
        self._values: dict[str, Value | None] = {}

    @property
    def own_turns(self) -> int:
        """The number of turns of the counsellor who speaks."""
        return self.aggregates.counsellor.turns if self._own_turns is None else self._own_turns

    @cached_property
    def summary(self) -> Summary:
        """The aggregates as numbers."""
        return self.aggregates.summary()

    @cached_property
    def empathy(self) -> EmpathySummary | None:
        """The empathy index and its inputs."""
        return session_empathy(self.exchanges, self.facts, self.model)

    @cached_property
    def evidence(self) -> Evidence | None:
        """The evidence for the low-empathy risk; None without any, or without an index."""
        if self.model is None or self.empathy is None:
            return None
        facts = self.facts
        here = self.model.of(facts.domain, facts.approach)
        stated = self.model.knows(facts.domain, facts.approach)
        usual = reference(here, channel_reference(facts), stated=stated)
        return evidence(self.empathy, here, usual)

    @property
    def counsellor(self) -> Contribution | None:
        """The newest counsellor turn in order."""
        return self.aggregates.latest[-1] if self.aggregates.latest else None

    @property
    def client(self) -> Contribution | None:
        """The newest client turn in order."""
        return self.aggregates.client_latest[-1] if self.aggregates.client_latest else None

    @cached_property
    def totals(self) -> tuple[float, int, float, int] | None:
        """Sum of expected levels, and number, of the last five counsellor turns; of the rest."""
        latest, settled = self.aggregates.latest, self.aggregates.settled
        before = settled.turns + len(latest) - RECENT
        if before < RECENT:
            return None
        sums = [sum(item.expected) for item in latest]
        earlier = sum(settled.expected) + sum(sums[:-RECENT])
        return sum(sums[-RECENT:]) / MILLION, RECENT, earlier / MILLION, before

    def value(self, name: str) -> Value | None:
        """A variable's value; None if absent."""
        if name not in self._values:
            self._values[name] = self._catalogue[name].read(self)
        return self._values[name]

    def present(self, names: tuple[str, ...]) -> dict[str, Value]:
        """The present variables among ``names``."""
        values, found = self._values, {}
        for name in names:
            value = values[name] if name in values else self.value(name)
            if value is not None:
                found[name] = value
        return found


class Kind(Enum):
    """Types of the expression language, by its own names."""

    NUMBER = "double"
    COUNT = "int"
    FLAG = "bool"
    WORD = "string"


class Variable(Struct, frozen=True):
    """One entry of the catalogue; ``digits``: decimals in messages.

    ``now``: the present name of an old name, which rules of earlier releases have.
    """

    name: str
    kind: Kind
    unit: str
    says: str
    read: Callable[[Reading], Value | None]
    absent: str = "never"
    digits: int = 2
    now: str = ""


def _outcome(name: str) -> Callable[[Reading], float | None]:
    return lambda r: r.outcomes.get(name)


def _seconds(since: datetime | None, clock: datetime | None) -> float | None:
    return (clock - since).total_seconds() if since is not None and clock is not None else None


def _rise(r: Reading) -> float | None:
    risks = r.watch.risks
    return risks[-1] - risks[0] if len(risks) > STEP else None


def _recent_empathy(r: Reading) -> float | None:
    found = r.totals
    return found[0] / found[1] if found else None


def _earlier_empathy(r: Reading) -> float | None:
    found = r.totals
    return found[2] / found[3] if found else None


def _drop(r: Reading) -> float | None:
    found = r.totals
    return found[2] / found[3] - found[0] / found[1] if found else None


def _level(index: int) -> Callable[[Reading], int | None]:
    def read(r: Reading) -> int | None:
        turn = r.counsellor
        if turn is None or r.watch.last_role is not Role.COUNSELLOR:
            return None
        return turn.levels[index]

    return read


def _total(r: Reading) -> int | None:
    turn = r.counsellor
    if turn is None or r.watch.last_role is not Role.COUNSELLOR:
        return None
    known = [level for level in turn.levels if level is not None]
    return sum(known) if len(known) == len(turn.levels) else None


def _mechanism(name: str, part: str) -> Callable[[Reading], float | None]:
    def read(r: Reading) -> float | None:
        found = r.summary.mechanisms.get(name)
        return float(getattr(found, part)) if found is not None else None

    return read


def _of_exchanges(name: str) -> Callable[[Reading], float | None]:
    def read(r: Reading) -> float | None:
        found: float | None = getattr(r.empathy, name, None)
        return found

    return read


def _measured(measure: Measure) -> Callable[[Reading], float | None]:
    if measure.part:
        return _mechanism(measure.mechanism, measure.part)
    if measure.unit == RISK:
        return lambda r: r.risk
    if measure.of_exchanges:
        return _of_exchanges(measure.name.removeprefix("empathy_"))
    return _of_summary(measure.name)


def _perceived(name: str) -> Callable[[Reading], float | None]:
    def read(r: Reading) -> float | None:
        if r.counsellor is None or r.watch.last_role is not Role.COUNSELLOR:
            return None
        return _probability(r.counsellor.evidence.get(name))

    return read


def _talk(label: str) -> Callable[[Reading], float | None]:
    def read(r: Reading) -> float | None:
        found = r.client.evidence.get(f"talk_type.{label}") if r.client is not None else None
        return found / MILLION if found is not None else None

    return read


def _satisfaction(r: Reading) -> float | None:
    return _probability(r.client.evidence.get(SATISFACTION)) if r.client is not None else None


def _probability(log_odds: int | None) -> float | None:
    return None if log_odds is None else 1.0 / (1.0 + math.exp(-log_odds / MILLION))


def _of_summary(name: str) -> Callable[[Reading], float | None]:
    def read(r: Reading) -> float | None:
        found: float | None = getattr(r.summary, name)
        return found

    return read


def _baseline(r: Reading, scope: str) -> Baseline | None:
    found: Baseline | None = getattr(r.facts.baselines, scope)
    return found


def _usual(scope: str, measure: str, part: str) -> Callable[[Reading], float | None]:
    def read(r: Reading) -> float | None:
        baseline = _baseline(r, scope)
        usual = getattr(baseline, measure) if baseline is not None else None
        return float(getattr(usual, part)) if usual is not None else None

    return read


def _has(scope: str, measure: str) -> Callable[[Reading], bool]:
    def read(r: Reading) -> bool:
        baseline = _baseline(r, scope)
        return baseline is not None and getattr(baseline, measure) is not None

    return read


NUMBER, COUNT, FLAG, WORD = Kind.NUMBER, Kind.COUNT, Kind.FLAG, Kind.WORD
_NO_MODEL: Final = "without an empathy index in the bundle"
_NO_OUTCOME: Final = "unless the bundle has a model for the session's domain and approach"
_NOT_COUNSELLOR: Final = "unless the latest turn is the counsellor's and its head has not abstained"
_NO_CLIENT: Final = "before the first client turn, or without the head"
_FEW: Final = f"before {2 * RECENT} counsellor turns"


def _of_measures() -> Iterator[Variable]:
    for measure in used(Use.RULES):
        found = Variable(
            measure.name, NUMBER, measure.unit.scale, measure.about, _measured(measure),
            measure.absent, measure.digits,
        )  # fmt: skip
        yield found
        for old in measure.variables[1:]:
            yield structs.replace(found, name=old, now=found.name)


def _variables() -> list[Variable]:
    v = Variable
    found = [
        *_of_measures(),
        v("has_risk", FLAG, "", "whether there is a risk", lambda r: r.risk is not None),
        v("risk_rise", NUMBER, "-1 to 1", f"the risk minus the risk {STEP} counsellor turns ago",
          _rise, f"before {STEP + 1} counsellor turns with a risk"),
        v("bundle.enter", NUMBER, SHARE.scale, "the bundle's threshold at which an alert begins",
          lambda r: r.model.enter if r.model else None, _NO_MODEL),
        v("bundle.exit", NUMBER, SHARE.scale, "the bundle's threshold below which an alert ends",
          lambda r: r.model.exit if r.model else None, _NO_MODEL),
        v("index_recent", NUMBER, SHARE.scale, "empathy index of the latest exchanges",
          lambda r: r.empathy.recent if r.empathy else None, NO_EXCHANGE),
        v("opportunities", COUNT, TURNS.scale, "empathic opportunities so far",
          lambda r: r.empathy.opportunities if r.empathy else 0, digits=0),
        v("missed_opportunities", COUNT, TURNS.scale, "opportunities without an empathic answer",
          lambda r: r.empathy.opportunities - r.empathy.met if r.empathy else 0, digits=0),
        v("empathy.recent", NUMBER, LEVELS.scale,
          f"mean expected total of the levels over the last {RECENT} counsellor turns",
          _recent_empathy, _FEW),
        v("empathy.earlier", NUMBER, LEVELS.scale,
          "the same mean over all counsellor turns before those", _earlier_empathy, _FEW),
        v("empathy.drop", NUMBER, "-6 to 6", "empathy.earlier minus empathy.recent", _drop, _FEW),
        v("turns", COUNT, TURNS.scale, "turns scored so far, of both sides",
          lambda r: r.aggregates.turns, digits=0),
        v("counsellor_turns", COUNT, TURNS.scale, "counsellor turns scored so far",
          lambda r: r.aggregates.counsellor.turns, digits=0),
        v("client_turns", COUNT, TURNS.scale, "client turns scored so far",
          lambda r: r.aggregates.client.turns, digits=0),
        v("late_turns", COUNT, TURNS.scale, "turns that arrived after their gap was given up",
          lambda r: r.aggregates.late_turns, digits=0),
        v("seconds", NUMBER, "s", "since the first scored turn, in event time",
          lambda r: _seconds(r.watch.opened_at, r.clock), "before the first turn", 0),
        v("waiting", FLAG, "", "whether the latest turn is the client's",
          lambda r: r.watch.last_role is Role.CLIENT),
        v("waiting_seconds", NUMBER, "s", "since the first client turn without an answer",
          lambda r: _seconds(r.watch.waiting_since, r.clock), "unless the client waits", 0),
        v("answer_seconds", NUMBER, "s", "waiting time before the latest counsellor turn",
          lambda r: r.watch.answered_after,
          "until the counsellor has answered a client turn", 0),
        v("waiting_distress", NUMBER, SHARE.scale,
          "highest probability that a client turn without an answer is worded in distress",
          lambda r: r.watch.distress,
          "unless the client waits, or without the bundle's distress probe"),
        v("has_waiting_distress", FLAG, "", "whether waiting_distress is present",
          lambda r: r.watch.distress is not None),
        v("crisis_language", NUMBER, SHARE.scale,
          "crisis language in the latest turn: 1 with a phrase of the list, else the value of the "
          "bundle's crisis probe, which counts from 0.5",
          lambda r: r.watch.crisis,
          "unless the latest turn is the client's, or without phrase and probe"),
        v("client_turns_since_crisis", COUNT, TURNS.scale,
          "client turns after the latest one with crisis language",
          lambda r: r.watch.since_crisis, "before crisis language", 0),
        v("client.satisfaction", NUMBER, SHARE.scale,
          "probability that the latest client turn is from a session the client rated well",
          _satisfaction, _NO_CLIENT),
        v("turn.total", COUNT, LEVELS.scale, "total of the levels of this counsellor turn", _total,
          _NOT_COUNSELLOR, 0),
        v("domain", WORD, "", "of the session; empty if unknown",
          lambda r: r.facts.domain or ""),
        v("channel", WORD, "", "of the session; empty if unknown",
          lambda r: r.facts.channel or ""),
        v("team", WORD, "", "of the session; empty if unknown",
          lambda r: r.facts.team or ""),
    ]  # fmt: skip
    for label in CLIENT_TALK:
        says = f"probability that the latest client turn is {label} talk"
        found.append(v(f"client.{label}", NUMBER, SHARE.scale, says, _talk(label), _NO_CLIENT))
    for i, name in enumerate(MECHANISMS):
        words = name.replace("_", " ")
        found += [
            v(f"turn.{name}", COUNT, LEVEL.scale, f"level of {words} of this counsellor turn",
              _level(i), _NOT_COUNSELLOR, 0),
        ]  # fmt: skip
    for name in PERCEIVED:
        says = f"probability that a listener would report {name} for this counsellor turn"
        read = _perceived(name)
        found.append(v(f"perceived.{name}", NUMBER, SHARE.scale, says, read, _NOT_COUNSELLOR))
    for name in OUTCOMES:
        says = f"predicted risk of the outcome {name}"
        found.append(v(f"outcome.{name}", NUMBER, SHARE.scale, says, _outcome(name), _NO_OUTCOME))
    for scope in ("channel", "counsellor"):
        for measure, unit, says in (
            ("risk", SHARE.scale, "its sessions' last risk"),
            ("empathy", LEVELS.scale, "empathy_total_mean of its sessions"),
            ("index", SHARE.scale, "the index of its sessions"),
        ):
            name, gone = f"baseline.{scope}.{measure}", f"without a baseline of the {scope}"
            found += [
                v(f"{name}_mean", NUMBER, unit, f"mean of {says}", _usual(scope, measure, "mean"),
                  gone),
                v(f"{name}_sd", NUMBER, unit, "standard deviation of the same",
                  _usual(scope, measure, "sd"), gone),
                v(f"has_baseline.{scope}.{measure}", FLAG, "", "whether this baseline exists",
                  _has(scope, measure)),
            ]  # fmt: skip
    return found


Catalogue = Mapping[str, Variable]
CATALOGUE: Final[Catalogue] = {variable.name: variable for variable in _variables()}
"""Variables of rules with any bundle; ``core.head_variables`` adds a bundle's own."""
OLD_NAMES: Final = {each.now: each.name for each in CATALOGUE.values() if each.now}
"""Names in rules and alerts of earlier releases, by the present ones."""
