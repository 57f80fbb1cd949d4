"""The empathy index of a session, and the risk that it is low (docs/low-empathy.md).

Every exchange (``core.exchanges``) weighs by its empathic opportunity: how much the client's turn
calls for an empathic answer (Suchman et al. 1997 name the term). The index is the weighted mean of
the answers, drawn towards what is usual in the domain; it says what the counsellor *expressed*. The
risk is the probability that the recent index lies below the reference's tenth percentile. All
numbers come with the bundle, fitted by ``python -m models.construct``.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, Expressed, TurnScore
from stream_app.core.baselines import Usual
from stream_app.core.exchanges import MILLION, MISSED_KEPT, Exchanges, Weighing
from stream_app.core.watch import Facts

LOWEST_TENTH: Final = 1.2815515655446004
"""Standard deviations below the mean at which a tenth of a normal distribution lies."""
INTERVAL: Final = 1.959963984540054
ENOUGH_SESSIONS: Final = 50
"""A channel with so many ended sessions is a reference of its own."""
SHOWN: Final = 4
"""The latest opportunities that a reason speaks of."""

CLIENT_FEATURES: Final = ("distress", "change_or_sustain_talk", "dissatisfaction")
COUNSELLOR_FEATURES: Final = (
    *MECHANISMS,
    "reflection",
    "complex_reflection",
    "open_question",
    "advice",
    "advice_unacknowledged",
    "information_unacknowledged",
    "rated_empathy",
)


class Scored(Protocol):
    """The scores of one turn."""

    @property
    def expressed(self) -> Expressed:
        """What the counsellor expressed."""

    @property
    def perceived(self) -> Mapping[str, float]:
        """Perceived empathy by head."""

    @property
    def client(self) -> Mapping[str, Mapping[str, float]]:
        """Distributions of the client's heads."""


class AnswerModel(Struct, frozen=True, forbid_unknown_fields=True):
    """``answer = intercept + sum(weight * feature)``, held within [0, 1]."""

    intercept: float
    weights: dict[str, float]


class DomainEmpathy(Struct, frozen=True, forbid_unknown_fields=True):
    """What counts as opportunity and answer in one domain, and what is usual there.

    ``opportunity``: weights of client features; the largest product is the opportunity. ``mean``,
    ``between`` and ``within``: mean answer, standard deviation of sessions' true means, and of
    answers within a session. ``quantiles``: of the sessions' index, at equal steps from the lowest
    to the highest. ``low``: its tenth percentile. ``answered_share``: of the opportunities.
    """

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

    ``default`` is the domain of sessions that state none. ``recent`` exchanges count for the recent
    index, each ``decay`` times as much as the one after it. There is no risk before ``min_answers``
    answered exchanges. The shipped rule alerts from ``enter`` on, and clears below ``exit``.
    """

    domains: dict[str, DomainEmpathy]
    default: str
    recent: int
    decay: float
    min_answers: int
    enter: float
    exit: float

    def of(self, domain: str | None) -> DomainEmpathy:
        """The reference of a domain; that of the default one for a domain without its own."""
        return self.domains.get(domain or self.default) or self.domains[self.default]


class EmpathySummary(Struct, frozen=True):
    """A session's empathy so far; index, interval and risk in [0, 1].

    ``percentile`` (0-100): share of the reference's sessions with a lower index. ``opportunities``
    and ``met``: empathic opportunities that the counsellor had, and those answered; ``missed``: the
    client turns of the others, the latest 50. ``recent_opportunities``: of the latest exchanges,
    whether each was answered.
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

    @property
    def answered_share(self) -> float | None:
        """Share of the opportunities that were answered; None without one."""
        return self.met / self.opportunities if self.opportunities else None


def turn_value(score: TurnScore, model: DomainEmpathy) -> int:
    """Opportunity of a client turn, or answer of a counsellor turn, in millionths."""
    if score.role is Role.CLIENT:
        found = client_features(score)
        value = max((w * found[name] for name, w in model.opportunity.items()), default=0.0)
    else:
        found = counsellor_features(score)
        terms = model.answer.weights.items()
        value = model.answer.intercept + sum(w * found[name] for name, w in terms)
    return round(min(1.0, max(0.0, value)) * MILLION)


def client_features(score: Scored) -> dict[str, float]:
    """What may make a client turn an empathic opportunity, each in [0, 1]; 0 without the head."""
    talk = score.client.get("talk_type", {})
    return {
        "distress": score.client.get("distress", {}).get("yes", 0.0),
        "change_or_sustain_talk": talk.get("change", 0.0) + talk.get("sustain", 0.0),
        "dissatisfaction": score.client.get("satisfaction", {}).get("no", 0.0),
    }


def counsellor_features(score: Scored) -> dict[str, float]:
    """What a counsellor turn expresses, each in [0, 1]; 0 without the head.

    Mechanisms by half of their expected level, from the calibrated probabilities, so that heads
    that abstain distort nothing. Advice and information are *unacknowledged* as far as the turn
    shows neither a mechanism of understanding or feeling nor a reflection.
    """
    expressed = score.expressed
    found, acknowledged = {}, 0.0
    for name in MECHANISMS:
        level = getattr(expressed, name)
        weak, strong = level.probabilities[1:] if level is not None else (0.0, 0.0)
        found[name] = weak / 2 + strong
        if name != "explorations":
            acknowledged = max(acknowledged, weak + strong)
    reflection, given = expressed.reflection or {}, expressed.input or {}
    found["complex_reflection"] = reflection.get("complex", 0.0)
    found["reflection"] = found["complex_reflection"] + reflection.get("simple", 0.0)
    found["open_question"] = (expressed.question or {}).get("open", 0.0)
    found["advice"] = given.get("advice", 0.0)
    missing = 1.0 - max(acknowledged, found["reflection"])
    found["advice_unacknowledged"] = found["advice"] * missing
    found["information_unacknowledged"] = given.get("information", 0.0) * missing
    found["rated_empathy"] = score.perceived.get("empathy", 0.0)
    return found


def session_empathy(
    exchanges: Exchanges, facts: Facts, model: EmpathyModel | None
) -> EmpathySummary | None:
    """The empathy of a session so far, by the reference of its domain or channel."""
    if model is None:
        return None
    channel = facts.baselines.channel
    return summary(exchanges, model, facts.domain, channel.index if channel else None)


def summary(
    exchanges: Exchanges, model: EmpathyModel, domain: str | None, usual: Usual | None = None
) -> EmpathySummary | None:
    """The session's empathy so far; None before the first answered exchange.

    ``usual``: the index of the channel's ended sessions, the reference when there are enough.
    """
    latest = exchanges.answered()
    if not latest and not exchanges.count:
        return None
    here = model.of(domain)
    own = usual if usual is not None and usual.n >= ENOUGH_SESSIONS else None
    mean, between = (own.mean, max(own.sd, 1e-3)) if own else (here.mean, here.between)
    low = mean - LOWEST_TENTH * between if own else here.low
    weights = [here.weighing.weight(each.opportunity) / MILLION for each in latest]
    answers = [each.answer / MILLION for each in latest]
    whole = _posterior(
        exchanges.weight / MILLION + sum(weights),
        exchanges.weighted / MILLION + sum(map(float.__mul__, weights, answers)),
        mean, between, here.within,
    )  # fmt: skip
    faded = [
        weight * model.decay**age for age, weight in enumerate(reversed(weights[-model.recent :]))
    ]
    recent = _posterior(
        sum(faded),
        sum(map(float.__mul__, faded, reversed(answers[-model.recent :]))),
        mean, between, here.within,
    )  # fmt: skip
    called = [
        (each.seq, each.answer >= here.weighing.answered * MILLION)
        for each in latest
        if each.opportunity >= here.weighing.opportunity * MILLION
    ]
    few = exchanges.count + len(latest) < model.min_answers
    index, spread = whole
    return EmpathySummary(
        index=_within(index),
        low=_within(index - INTERVAL * spread),
        high=_within(index + INTERVAL * spread),
        percentile=100.0 * (_normal((index - mean) / between) if own else _rank(index, here)),
        recent=_within(recent[0]),
        risk=None if few else _normal((low - recent[0]) / recent[1]),
        opportunities=exchanges.opportunities + len(called),
        met=exchanges.met + sum(answered for _, answered in called),
        missed=[*exchanges.missed, *(seq for seq, answered in called if not answered)][
            -MISSED_KEPT:
        ],
        recent_opportunities=called[-SHOWN:],
    )


def _posterior(
    weight: float, weighted: float, mean: float, between: float, within: float
) -> tuple[float, float]:
    """Mean and standard deviation of a session's true mean, by a normal prior and likelihood."""
    prior, data = 1.0 / between**2, weight / within**2
    centre = (prior * mean + weighted / within**2) / (prior + data)
    return centre, 1.0 / math.sqrt(prior + data)


def _rank(index: float, here: DomainEmpathy) -> float:
    """Share of the reference with a lower index, between its quantiles by straight lines."""
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
