"""Fit the parameters of `stream_app.core.measures.empathy` to human judgements.

In peer support, counselling and customer service, *answers* are weighed by a regression of
EPITOME's labelled totals (Sharma et al. 2020) on the head outputs for the response. In motivational
interviewing they are weighed by a ridge regression of AnnoMI's session quality (Wu et al. 2022) on
the session's mean features: reflections count for, and advice without acknowledgement against
(Miller & Rollnick 2013, chapter 1). *References* are the real sessions of a domain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler

from models.construct.benchmark import BenchmarkSessions, Known
from models.construct.traces import Features
from models.data.rated_sessions import RatedSession
from models.labels import COUNSELLOR
from models.model.batches import AFTER
from stream_app.contracts.events import Approach, Role
from stream_app.core.measures.empathy import AnswerModel, DomainEmpathy, EmpathyModel, summary
from stream_app.core.measures.exchanges import MILLION, Exchanges, Weighing

Floats = NDArray[np.float64]

LABELLED = (
    "emotional_reactions",
    "interpretations",
    "explorations",
)
"""Features weighed by the regression on EPITOME's labels."""
CODED = (
    "reflection",
    "complex_reflection",
    "open_question",
    "advice",
    "advice_unacknowledged",
    "information_unacknowledged",
)
"""Features weighed by the regression on AnnoMI's quality."""
STRENGTH = 0.03
"""Inverse of the ridge penalty on AnnoMI's 99 sessions, as in `models.evaluate.annomi_quality`."""
FLOOR, OPPORTUNITY = 0.6, 0.5
"""Weight of an exchange without an opportunity, and the probability from which it is one.

Chosen by hand on a fold of the benchmark.
"""
SPREAD = 0.2
"""Lower bound on the prior standard deviation of a session's level.

Reference sessions are good ones and close to each other (0.1); other sessions may lie anywhere.
"""
NOISE = 0.24
"""Lower bound on the standard deviation of answers within a session.

Taken from composed sessions of EPITOME. One AnnoMI counsellor's answers vary less (0.15), but then
noise looks like a change of level. Chosen among 0.15 to 0.3 on two folds.
"""
CHANGE = 0.03
"""Prior probability of a change of level, chosen by hand on the folds of the benchmark."""
MIN_ANSWERS = 2
FEWEST_EXCHANGES = 4
"""Minimum number of exchanges for a session to be part of a reference."""
QUANTILES = np.linspace(0.0, 1.0, 21)
LOWEST = 0.1
TAILS = (0.01, 0.99)
DEFAULT = "peer-support"
MOTIVATIONAL = Approach.MOTIVATIONAL_INTERVIEWING.value
SERVICES = {
    "peer-support": ("peer support", "emotional messages"),
    "counselling": ("counselling", "emotional messages"),
    "customer-service": ("customer service", "emotional messages"),
    MOTIVATIONAL: ("motivational interviewing", "messages about feelings or change"),
}
OPPORTUNITIES: dict[str, dict[str, float]] = {
    "peer-support": {"distress": 1.0},
    "counselling": {"distress": 1.0},
    "customer-service": {"distress": 1.0},
    MOTIVATIONAL: {"distress": 1.0, "change_or_sustain_talk": 1.0},
}


@dataclass(frozen=True)
class Part:
    """Sessions of one fold with its model's features, concatenated by rows."""

    benchmark: BenchmarkSessions
    starts: NDArray[np.int64]
    features: Features

    def chosen(
        self, wanted: Callable[[RatedSession, Known], bool]
    ) -> list[tuple[RatedSession, Known, range]]:
        """The wanted sessions with their rows."""
        return [
            (session, known, range(int(self.starts[i]), int(self.starts[i + 1])))
            for i, (session, known) in enumerate(
                zip(self.benchmark.sessions, self.benchmark.known, strict=True)
            )
            if wanted(session, known)
        ]


def labelled_answers(parts: Sequence[Part]) -> tuple[Floats, Floats]:
    """Features [answers, LABELLED] and labelled totals of distinct EPITOME responses."""
    rows, totals = [], []
    for part in parts:
        seen: set[str] = set()
        for session, known, turns in part.chosen(
            lambda _, known: known.kind == "composed" and known.domain == DEFAULT
        ):
            places = session.positions[COUNSELLOR]
            for place, total in zip(places, known.totals, strict=True):
                if session.turns[place].text not in seen:
                    seen.add(session.turns[place].text)
                    rows.append([part.features.counsellor[n][turns[place]] for n in LABELLED])
                    totals.append(float(total))
    return np.array(rows), np.array(totals)


def general_answer(parts: Sequence[Part]) -> tuple[AnswerModel, float]:
    """Answer model fitted to EPITOME's labels, and its threshold for an empathic answer."""
    x, total = labelled_answers(parts)
    found = LinearRegression().fit(x, total)
    model = _unit(dict(zip(LABELLED, found.coef_.tolist(), strict=True)), found.predict(x)
                  - found.intercept_)  # fmt: skip
    answers = np.clip(_values(model, dict(zip(LABELLED, x.T, strict=True))), 0.0, 1.0)
    limits = np.linspace(0.02, 0.98, 97)
    right = [
        (answers[total > 0] >= limit).mean() + (answers[total == 0] < limit).mean()
        for limit in limits
    ]
    return model, round(float(limits[int(np.argmax(right))]), 2)


def motivational_answer(
    parts: Sequence[Part], keeps: Callable[[RatedSession], bool]
) -> tuple[AnswerModel, float]:
    """Answer model fitted to AnnoMI's quality, and the median answer of high-quality sessions."""
    means, high, turns = [], [], []
    for part in parts:
        for session, _, rows in part.chosen(
            lambda s, known: s.source == "annomi" and known.kind == "real" and keeps(s)
        ):
            table = _table(part.features, rows, CODED)
            if len(table) >= FEWEST_EXCHANGES:
                means.append(table.mean(0))
                high.append(session.quality == "high")
                turns.append(table)
    x, y = np.array(means), np.array(high)
    scaler = StandardScaler().fit(x)
    ridge = LogisticRegression(C=STRENGTH, class_weight="balanced", max_iter=2000)
    coef = ridge.fit(scaler.transform(x), y).coef_[0] / scaler.scale_
    every = np.concatenate(turns)
    model = _unit(dict(zip(CODED, coef.tolist(), strict=True)), every @ coef)
    good = np.concatenate([table for table, is_high in zip(turns, high, strict=True) if is_high])
    answers = np.clip(_values(model, dict(zip(CODED, good.T, strict=True))), 0.0, 1.0)
    return model, round(float(np.median(answers)), 2)


def _table(features: Features, rows: range, names: Sequence[str]) -> Floats:
    table = np.stack([features.counsellor[name][rows] for name in names], axis=1)
    return table[~np.isnan(table).any(1)]


def _unit(weights: Mapping[str, float], values: Floats) -> AnswerModel:
    """Scale the weights so that values, except the tails, lie between 0 and 1."""
    low, high = np.quantile(values, TAILS)
    scale = 1.0 / float(high - low)
    rounded = {name: round(float(weight * scale), 4) for name, weight in weights.items()}
    return AnswerModel(round(float(-low * scale), 4), rounded)


def _values(model: AnswerModel, features: Mapping[str, Floats]) -> Floats:
    terms = [weight * features[name] for name, weight in model.weights.items()]
    return np.asarray(model.intercept + np.sum(terms, axis=0))


def turn_values(features: Features, here: DomainEmpathy) -> tuple[Floats, Floats]:
    """Opportunity and answer of every turn, in [0, 1]; NaN for turns of the other role."""
    opportunity = np.max([w * features.client[n] for n, w in here.opportunity.items()], axis=0)
    answer = _values(here.answer, features.counsellor)
    return np.clip(opportunity, 0.0, 1.0), np.clip(answer, 0.0, 1.0)


def exchanges_of(
    session: RatedSession, opportunity: Floats, answer: Floats, weighing: Weighing
) -> tuple[Exchanges, list[tuple[float, float, float]]]:
    """The session's exchanges computed by the core, and each as (weight, opportunity, answer)."""
    whole, everything = Exchanges(), []
    for seq, turn in enumerate(session.turns):
        counsellor = turn.role == COUNSELLOR
        value = round(float((answer if counsellor else opportunity)[seq]) * MILLION)
        role = Role.COUNSELLOR if counsellor else Role.CLIENT
        if whole.latest and not counsellor and whole.latest[-1].counsellor:
            everything.append(whole.answered()[-1])
        whole.observe(role, seq, value, AFTER, weighing)
    if whole.latest and whole.latest[-1].counsellor:
        everything.append(whole.answered()[-1])
    return whole, [
        (
            weighing.weight(each.opportunity) / MILLION,
            each.opportunity / MILLION,
            each.answer / MILLION,
        )
        for each in everything
    ]


def reference(
    name: str,
    answer: AnswerModel,
    answered: float,
    parts: Sequence[Part],
    keeps: Callable[[RatedSession, Known], bool],
    opportunity_weights: Mapping[str, float] | None = None,
    floors: tuple[float, float] = (SPREAD, NOISE),
) -> DomainEmpathy:
    """Reference distribution of a domain or approach, from the sessions selected by `keeps`.

    `opportunity_weights`: of client features; None for those of the domain. `floors`: lower bounds
    of the standard deviation between sessions, and of answers within one.
    """
    service, messages = SERVICES[name]
    weighing = Weighing(floor=FLOOR, opportunity=OPPORTUNITY, answered=answered)
    here = DomainEmpathy(
        service=service,
        messages=messages,
        opportunity=dict(opportunity_weights or OPPORTUNITIES[name]),
        answer=answer,
        weighing=weighing,
        mean=0.5,
        between=1.0,
        within=1.0,
        quantiles=[0.0, 1.0],
        low=0.0,
        answered_share=0.0,
    )
    sessions = []
    for part in parts:
        opportunity, answers = turn_values(part.features, here)
        for session, _, rows in part.chosen(keeps):
            found = exchanges_of(session, opportunity[rows], answers[rows], weighing)
            if len(found[1]) >= FEWEST_EXCHANGES:
                sessions.append(found)
    every = [np.array(items) for _, items in sessions]
    mean, between, within = spreads([(items[:, 0], items[:, 2]) for items in every])
    joined = np.concatenate(every)
    called = joined[joined[:, 1] >= OPPORTUNITY]
    here = _with(
        here,
        mean=mean,
        between=max(floors[0], between),
        within=max(floors[1], within),
        answered_share=float((called[:, 2] >= answered).mean()) if len(called) else 0.0,
    )
    probe = EmpathyModel({name: here}, {}, name, CHANGE, MIN_ANSWERS, 0.5, 0.5)
    indices = [
        told.index for whole, _ in sessions if (told := summary(whole, probe, here)) is not None
    ]
    quantiles = np.quantile(indices, QUANTILES)
    return _with(
        here,
        quantiles=[round(float(value), 4) for value in quantiles],
        low=round(float(np.quantile(indices, LOWEST)), 4),
    )


def spreads(sessions: Sequence[tuple[Floats, Floats]]) -> tuple[float, float, float]:
    """Mean of the sessions' levels, their standard deviation, and that of answers within a session.

    Each session is its exchanges' weights and answers. As in the posterior of `core.empathy`, an
    exchange of weight w counts as w observations: its answer has the variance within^2 / w. Then a
    session's weighted mean has the variance within^2 / sum(w) around its level, and its weighted
    squares the expectation within^2 * (n - 1): moments that give both variances without bias,
    whatever the weights.
    """
    weight = np.array([w.sum() for w, _ in sessions])
    means = np.array([w @ x for w, x in sessions]) / weight
    squares = [w @ (x - mean) ** 2 for (w, x), mean in zip(sessions, means, strict=True)]
    within = float(np.sqrt(sum(squares) / sum(len(x) - 1 for _, x in sessions)))
    between = means.var(ddof=1) - (within**2 / weight).mean()
    return float(means.mean()), float(np.sqrt(max(between, 0.0))), within


def _with(here: DomainEmpathy, **changes: object) -> DomainEmpathy:
    rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in changes.items()}
    kept = {name: getattr(here, name) for name in here.__struct_fields__}
    return DomainEmpathy(**{**kept, **rounded})


def fit(
    parts: Sequence[Part],
    enter: float,
    leave: float,
    keeps: Callable[[RatedSession], bool] = lambda _: True,
    references: Sequence[Part] | None = None,
) -> EmpathyModel:
    """Fit the model on the sessions of some folds; `keeps` selects sessions of AnnoMI.

    `references` are the same sessions scored by another bundle, whose reference is wanted.
    """
    usual_parts = references or parts
    general, answered = general_answer(parts)

    def real(domain: str) -> Callable[[RatedSession, Known], bool]:
        return lambda session, known: (
            known.kind == "real"
            and known.domain == domain
            and session.source != "esconv_failed"
            and keeps(session)
        )

    domains = {
        domain: reference(domain, general, answered, usual_parts, real(domain))
        for domain in OPPORTUNITIES
        if domain != MOTIVATIONAL
    }
    conduct, usual = motivational_answer(parts, keeps)
    motivational = reference(
        MOTIVATIONAL,
        conduct,
        usual,
        usual_parts,
        lambda session, known: (
            known.kind == "real" and session.source == "annomi" and keeps(session)
        ),
    )
    return EmpathyModel(
        domains, {MOTIVATIONAL: motivational}, DEFAULT, CHANGE, MIN_ANSWERS, enter, leave
    )
