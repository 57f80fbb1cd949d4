"""The empathy index of a session, and the risk that it is low (docs/low-empathy.md).

Every exchange (``core.exchanges``) is weighted by its empathic opportunity: how much the client's
turn calls for an empathic answer (term by Suchman et al. 1997). The index is the weighted mean of
the answers, shrunk towards the domain's mean; it measures what the counsellor *expressed*. The
recent index is the index since the session's level last changed, averaged over the possible change
points (Bayesian change point: Barry & Hartigan 1993), so that a steady session is scored by all of
its exchanges and one whose empathy drops by those after the drop. The risk is the probability that
the recent index lies below the reference's tenth percentile. All parameters come with the bundle,
fitted by ``python -m models.construct``.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, Expressed
from stream_app.core.measures.baselines import Baseline, Usual
from stream_app.core.measures.exchanges import (
    MILLION,
    MISSED_KEPT,
    Answered,
    Exchanges,
    Weighing,
    counts,
)
from stream_app.core.measures.watch import Facts

LOWEST_TENTH: Final = 1.2815515655446004
"""Standard deviations below the mean of a normal distribution's tenth percentile."""
INTERVAL: Final = 1.959963984540054
SMALLEST_SD: Final = 1e-3
ENOUGH_SESSIONS: Final = 50
"""Minimum number of ended sessions for a channel to be its own reference."""
SPREAD: Final = 0.02
"""Reference sessions whose index differs by less are all alike, so none is better or worse."""
SHOWN: Final = 4
"""Number of latest opportunities described in a reason."""
QUOTED: Final = 3
"""Number of exchanges that a reason is about if it describes none of them."""

CLIENT_FEATURES: Final = ("distress", "change_or_sustain_talk", "opportunity")
COUNSELLOR_FEATURES: Final = (
    *MECHANISMS,
    "reflection",
    "complex_reflection",
    "open_question",
    "advice",
    "advice_unacknowledged",
    "information_unacknowledged",
    "answer",
    "lapse",
)


class Scored(Protocol):
    """The scores of one turn."""

    @property
    def expressed(self) -> Expressed:
        """Expressed empathy of the counsellor's turn."""

    @property
    def client(self) -> Mapping[str, Mapping[str, float]]:
        """Distributions of the client's heads."""


class ScoredTurn(Scored, Protocol):
    """The scores of one turn, with its role."""

    @property
    def role(self) -> Role:
        """The speaker's role."""


class AnswerModel(Struct, frozen=True, forbid_unknown_fields=True):
    """``answer = intercept + sum(weight * feature)``, clipped to [0, 1]."""

    intercept: float
    weights: dict[str, float]


class DomainEmpathy(Struct, frozen=True, forbid_unknown_fields=True):
    """Definition of opportunity and answer in one domain, and its reference distribution.

    ``service`` and ``messages`` name the domain and its opportunities in sentences.
    ``opportunity``: weights of client features; the largest product is the opportunity. ``mean``:
    of the sessions' answers. ``between``, ``within``: standard deviation of the prior of a
    session's level, and of answers within a session. ``quantiles``: of the sessions' index, at
    equal steps from the lowest to the highest. ``low``: its tenth percentile. ``answered_share``:
    of the opportunities.
    """

    service: str
    messages: str
    opportunity: dict[str, float]
    answer: AnswerModel
    weighing: Weighing
    mean: float
    between: float
    within: float
    quantiles: list[float]
    low: float
    answered_share: float


class EmpathyModel(Struct, frozen=True, forbid_unknown_fields=True):
    """The bundle's references by domain.

    ``approaches`` are references of sessions that follow a method, instead of their domain's;
    ``default`` is the domain of sessions that state none. ``change``: prior probability that the
    level changes between two exchanges. There is no risk before ``min_answers`` answered exchanges.
    The shipped rule alerts from ``enter`` on, and clears below ``exit``.
    """

    domains: dict[str, DomainEmpathy]
    approaches: dict[str, DomainEmpathy]
    default: str
    change: float
    min_answers: int
    enter: float
    exit: float

    def of(self, domain: str | None, approach: str | None) -> DomainEmpathy:
        """The reference of an approach, else of a domain, else of the default domain."""
        return (
            self.approaches.get(approach or "")
            or self.domains.get(domain or self.default)
            or self.domains[self.default]
        )

    def knows(self, domain: str | None, approach: str | None) -> bool:
        """Whether the reference is of that approach or domain, not of the default domain."""
        return approach in self.approaches or domain in self.domains


class EmpathySummary(Struct, frozen=True):
    """A session's empathy so far; index, interval and risk in [0, 1].

    ``percentile`` (0-100): share of the reference's sessions with a lower index. ``opportunities``
    and ``met``: numbers of empathic opportunities, and of those answered; ``missed``: the client
    turns of the others, the latest 50. ``recent_opportunities``: of the latest exchanges, whether
    each was answered. ``weakest``: client turns of those with the least empathic answers.
    """

    index: float
    low: float
    high: float
    percentile: float
    recent: float
    risk: float | None
    opportunities: int
    met: int
    missed: list[int]
    recent_opportunities: list[tuple[int, bool]]
    weakest: list[int]

    @property
    def answered_share(self) -> float | None:
        """Share of answered opportunities; None without any."""
        return self.met / self.opportunities if self.opportunities else None


def turn_value(score: ScoredTurn, model: DomainEmpathy, uses: int = 1) -> int:
    """Opportunity of a client turn, or answer of a counsellor turn, in millionths.

    ``uses``: how often the speaker has said these very words in the session, this turn included.
    The n-th use of a counsellor's template counts 1/n; a client who repeats a message calls no less
    for empathy.
    """
    if score.role is Role.CLIENT:
        uses = 1
        found = client_features(score)
        value = max((w * found[name] for name, w in model.opportunity.items()), default=0.0)
    else:
        found = counsellor_features(score)
        terms = model.answer.weights.items()
        value = model.answer.intercept + sum(w * found[name] for name, w in terms)
    return round(min(1.0, max(0.0, value)) * MILLION / uses)


def client_features(score: Scored) -> dict[str, float]:
    """Features of an empathic opportunity in a client turn, each in [0, 1]; 0 without the head."""
    talk = score.client.get("talk_type", {})
    return {
        "distress": score.client.get("distress", {}).get("yes", 0.0),
        "change_or_sustain_talk": talk.get("change", 0.0) + talk.get("sustain", 0.0),
        "opportunity": score.client.get("opportunity", {}).get("yes", 0.0),
    }


def counsellor_features(score: Scored) -> dict[str, float]:
    """Expressed empathy of a counsellor turn, each value in [0, 1]; 0 without the head.

    Mechanisms as half their expected level, from calibrated probabilities, so that abstention does
    not distort them; perceived empathy is excluded. Advice and information are *unacknowledged* to
    the degree that the turn shows no emotional reaction, interpretation or reflection.
    """
    expressed = score.expressed
    found, acknowledged = {}, 0.0
    for name in MECHANISMS:
        level = expressed.level(name)
        weak, strong = level.probabilities[1:] if level is not None else (0.0, 0.0)
        found[name] = weak / 2 + strong
        if name != "explorations":
            acknowledged = max(acknowledged, weak + strong)
    reflection = expressed.distribution("reflection") or {}
    given = expressed.distribution("input") or {}
    found["complex_reflection"] = reflection.get("complex", 0.0)
    found["reflection"] = found["complex_reflection"] + reflection.get("simple", 0.0)
    found["open_question"] = (expressed.distribution("question") or {}).get("open", 0.0)
    found["advice"] = given.get("advice", 0.0)
    missing = 1.0 - max(acknowledged, found["reflection"])
    found["advice_unacknowledged"] = found["advice"] * missing
    found["information_unacknowledged"] = given.get("information", 0.0) * missing
    for name in ("answer", "lapse"):
        found[name] = (expressed.distribution(name) or {}).get("yes", 0.0)
    return found


def session_empathy(
    exchanges: Exchanges, facts: Facts, model: EmpathyModel | None
) -> EmpathySummary | None:
    """The empathy of a session so far, relative to its domain or channel."""
    if model is None:
        return None
    own = channel_reference(facts)
    here = model.of(facts.domain, facts.approach)
    return summary(exchanges, model, here, own.index if own else None)


def channel_reference(facts: Facts) -> Baseline | None:
    """The channel's baseline if it is the reference instead of the domain's."""
    channel = facts.baselines.channel
    return channel if channel is not None and _enough(channel.index) else None


def _enough(usual: Usual | None) -> Usual | None:
    return usual if usual is not None and usual.n >= ENOUGH_SESSIONS else None


def summary(
    exchanges: Exchanges, model: EmpathyModel, here: DomainEmpathy, usual: Usual | None = None
) -> EmpathySummary | None:
    """The session's empathy so far; None before the first answered exchange.

    ``here``: the reference of the session's approach or domain. ``usual``: the index of the
    channel's ended sessions, used as the reference if there are enough of them.
    """
    latest = [each for each in exchanges.answered() if counts(each, here.weighing)]
    if not latest and not exchanges.count:
        return None
    own = _enough(usual)
    low = own.mean - LOWEST_TENTH * own.sd if own else here.low
    prior = _Level(own.mean if own else here.mean, here.between, here.within)
    settled = exchanges.weight / MILLION, exchanges.weighted / MILLION
    data = [_data(here.weighing.weight(each.opportunity), each.answer) for each in latest]
    recent = _since_change(prior, settled, data, model.change)
    _, whole = recent[0]
    called = [
        (each.seq, each.answer >= here.weighing.answered * MILLION)
        for each in latest
        if each.opportunity >= here.weighing.opportunity * MILLION
    ]
    few = exchanges.count + len(latest) < model.min_answers
    return EmpathySummary(
        index=_within(whole.mean),
        low=_within(whole.mean - INTERVAL * whole.sd),
        high=_within(whole.mean + INTERVAL * whole.sd),
        percentile=100.0 * (_place(whole.mean, own) if own else _rank(whole.mean, here)),
        recent=_within(sum(share * part.mean for share, part in recent)),
        risk=None if few else _within(sum(share * part.below(low) for share, part in recent)),
        opportunities=exchanges.opportunities + len(called),
        met=exchanges.met + sum(answered for _, answered in called),
        missed=[*exchanges.missed, *(seq for seq, answered in called if not answered)][
            -MISSED_KEPT:
        ],
        recent_opportunities=called[-SHOWN:],
        weakest=_weakest(latest[-SHOWN:]),
    )


def _weakest(latest: Sequence[Answered]) -> list[int]:
    """The client turns of the least empathic answers, in order; of equal ones the latest."""
    by_answer = sorted(latest, key=lambda each: (each.answer, -each.seq))
    return sorted(each.seq for each in by_answer[:QUOTED])


_Data = tuple[float, float]
"""Sums over exchanges: of the weights, and of weight times answer."""


def _data(weight: int, answer: int) -> _Data:
    return weight / MILLION, weight * answer / MILLION**2


class _Known(NamedTuple):
    """Posterior of a level: mean, standard deviation, and log evidence for a single level.

    Constants that are equal for all partitions of the data are left out of the evidence.
    """

    mean: float
    sd: float
    evidence: float

    def below(self, bound: float) -> float:
        """The probability that the level is below the bound."""
        return _normal((bound - self.mean) / self.sd)


class _Level(NamedTuple):
    """Prior of a session's level, and standard deviation of the answers around it."""

    mean: float
    between: float
    within: float

    def given(self, data: _Data) -> _Known:
        """Update the normal prior with the data."""
        weight, weighted = data
        prior = 1.0 / self.between**2
        precision = prior + weight / self.within**2
        mean = (prior * self.mean + weighted / self.within**2) / precision
        evidence = math.log(prior / precision) + mean**2 * precision - self.mean**2 * prior
        return _Known(mean, precision**-0.5, evidence / 2.0)


def _since_change(
    prior: _Level, settled: _Data, latest: Sequence[_Data], change: float
) -> list[tuple[float, _Known]]:
    """The level since the last change, for every possible change point, with its probability.

    The first entry is no change among the latest exchanges, the level of the whole session; earlier
    change points are not considered.
    """
    before = list(accumulate(latest, _added, initial=settled))
    after = list(accumulate(reversed(latest), _added, initial=(0.0, 0.0)))
    places = range(1, len(latest) + (settled[0] > 0.0))
    steady = prior.given(before[-1])
    found = [(steady.evidence + len(places) * math.log1p(-change), steady)]
    for place in places:  # number of exchanges since the change
        since = prior.given(after[place])
        evidence = prior.given(before[len(latest) - place]).evidence + since.evidence
        found.append((evidence + math.log(change), since))
    largest = max(evidence for evidence, _ in found)
    shares = [math.exp(evidence - largest) for evidence, _ in found]
    total = sum(shares)
    return [(share / total, known) for share, (_, known) in zip(shares, found, strict=True)]


def _added(one: _Data, other: _Data) -> _Data:
    return one[0] + other[0], one[1] + other[1]


def _place(index: float, usual: Usual) -> float:
    """Share of the channel's sessions with a lower index, assuming a normal distribution."""
    return _normal((index - usual.mean) / max(usual.sd, SMALLEST_SD))


def _rank(index: float, here: DomainEmpathy) -> float:
    """Share of the reference with a lower index, interpolated linearly between its quantiles."""
    steps: Sequence[float] = here.quantiles
    below = sum(step < index for step in steps)
    if below == 0 or below == len(steps):
        return 0.0 if below == 0 else 1.0
    left, right = steps[below - 1], steps[below]
    return (below - 1 + (index - left) / (right - left)) / (len(steps) - 1)


def _normal(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def _within(value: float) -> float:
    return min(1.0, max(0.0, value))
