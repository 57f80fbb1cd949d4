"""A synthetic platform with known effects, as the frames that the analyses read.

Every effect is a parameter of ``World`` and 0 by default, so a default world has nothing to find.
Levels are Binomial(2, m / 2) with m linear in the effects, so that slopes and jumps on the scale of
levels are exact; likes and replies are Poisson, follows Bernoulli with a logit. Counsellors differ
persistently in level, popularity and alert rate, so that their sessions are alike.

``simulated_store`` writes a platform to a database.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from stream_app.analytics.questions.frames import (
    DAYS_A_MONTH,
    RISK,
    SESSION_COLUMNS,
    Frames,
    with_joining,
)
from stream_app.analytics.questions.head_labels import ABSTAINED, HEAD, PERCEIVED
from stream_app.contracts.scores import MECHANISMS, TOTAL

SESSION_NOISE: Final = 0.15
"""Half the range by which a session's mean level differs from its counsellor's."""
BASE: Final = {"emotional_reactions": 0.1, "interpretations": -0.1, "explorations": 0.0}
STRATEGIES: Final = ("question", "affirmation_and_reassurance", "others")
PERCEIVED_HEADS: Final = ("engagement", "understanding", "sympathy", "helpfulness")
RULE: Final = "low-empathy"
"""The rule is the shipped file's, so that past and present alerts are those of one rule."""
LIKE_RATE: Final = 0.4
REPLY_RATE: Final = 0.5
FOLLOW_LOGIT: Final = -0.8
RATING: Final = 2.6
ALERT_LOGIT: Final = -1.4
ACKNOWLEDGE_LOG_MINUTES: Final = 2.3
LENGTH_ELASTICITY: Final = 0.3
"""Longer texts get more likes and replies and have higher levels (a confounder)."""


@dataclass(frozen=True, slots=True)
class World:
    """A platform's size and effects. Months are counted from ``begins``.

    Attributes:
        joining_months: counsellors join evenly within so many months.
        slopes: change of the mean level per month since joining, by joining year.
        leaving: monthly hazard of leaving.
        leaving_by_level: log hazard ratio per standard deviation of the counsellor's own level;
            negative: the more empathic stay longer.
        likes, replies: log rate ratio of levels 1 and 2 compared with 0, by mechanism.
        follows: log odds ratio per unit of the session's mean level, by mechanism.
        rating: points per unit of the session's mean level, by mechanism.
        training: month of a training; None: there is none.
        training_jump: change of the mean level from then on.
        training_haste: change of the log time to acknowledge from then on.
        new_model: month from which another bundle scores, with ``new_model_shift`` of the level.
        drift: month from which ``drift_share`` of the strategies become questions.
        perceived_by_question: change of the perceived scores where the strategy is a question.
        pair: change of the mean level where counsellor and client both have attribute "a".
        alerts_by_phone: log odds ratio of an alert on the channel phone.
        errors_by_phone: further share of wrong model levels on the channel phone.
        rated: share of the counsellor turns that supervisors rated.
        shocks: standard deviation of an effect on the mean level that all sessions of a week have.
        lasting: correlation of the shocks of a week and the next.
        season: height of a yearly wave of the mean level.
        phone_level: difference of the mean level on the channel phone.
        phone_leaves: month from which no session is on the phone; the share falls evenly until
            then.
        strays: sessions after the change of the model that the older one scored.
        unequal: standard deviation of the logarithm of counsellors' numbers of sessions.
        volume: factor of the number of sessions from the training on.
        missing_weeks: share of weeks without any session.
    """

    seed: int = 1
    begins: datetime = datetime(2024, 1, 1, tzinfo=UTC)
    counsellors: int = 60
    months: float = 24.0
    joining_months: float = 15.0
    sessions_a_month: float = 3.0
    turns: int = 4
    level: float = 0.8
    between: float = 0.15
    slopes: Mapping[int, float] = field(default_factory=dict)
    leaving: float = 0.02
    leaving_by_level: float = 0.0
    likes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    replies: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    follows: Mapping[str, float] = field(default_factory=dict)
    rating: Mapping[str, float] = field(default_factory=dict)
    training: float | None = None
    training_jump: float = 0.0
    training_haste: float = 0.0
    new_model: float | None = None
    new_model_shift: float = 0.0
    drift: float | None = None
    drift_share: float = 0.0
    perceived_by_question: float = 0.0
    pair: float = 0.0
    alerts_by_phone: float = 0.0
    errors_by_phone: float = 0.0
    rated: float = 0.05
    shocks: float = 0.0
    lasting: float = 0.7
    season: float = 0.0
    phone_level: float = 0.0
    phone_leaves: float | None = None
    strays: int = 0
    unequal: float = 0.0
    volume: float = 1.0
    missing_weeks: float = 0.0


@dataclass(frozen=True, slots=True)
class Platform:
    """``attributes``: the self-declared attribute of each speaker, "a" or "b"."""

    world: World
    frames: Frames
    attributes: dict[str, str]


def simulate(world: World) -> Platform:
    """Draw a platform; the same world always gives the same one."""
    draw = np.random.default_rng(world.seed)
    sessions, person = _sessions(world, draw)
    mean = _mean_level(world, sessions, draw)
    turns = _turns(world, sessions, mean, draw)
    sessions = _aggregates(world, sessions, turns, person, draw)
    frames = Frames(
        sessions=sessions.reindex(columns=[*SESSION_COLUMNS, f"{RISK}dissatisfied"]),
        turns=_with_clients(turns, sessions, draw),
        alerts=_alerts(world, sessions, draw),
        outcomes=_outcomes(world, sessions, turns, draw),
        ratings=_ratings(world, turns, draw),
    )
    attributes = dict(zip(sessions["counsellor"], sessions["of_counsellor"], strict=True))
    attributes |= dict(zip(sessions["client"], sessions["of_client"], strict=True))
    return Platform(world, frames, attributes)


def _sessions(world: World, draw: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One row a session with what is known before anybody speaks; and the counsellors."""
    count = world.counsellors
    person = pd.DataFrame(
        {
            "counsellor": [f"counsellor-{number:04}" for number in range(count)],
            "own": _bounded_normal(draw, count),
            "popularity": 0.25 * draw.standard_normal(count),
            "frailty": draw.standard_normal(count),
            "of_counsellor": np.where(draw.random(count) < 0.5, "a", "b"),
            "team": np.where(np.arange(count) % 2, "south", "north"),
        }
    )
    joins = draw.uniform(0, world.joining_months, count)
    hazard = world.leaving * np.exp(world.leaving_by_level * person["own"].to_numpy())
    stays = np.minimum(draw.exponential(1 / hazard), world.months - joins)
    many = draw.poisson(world.sessions_a_month * stays * _busy(world))
    row = np.repeat(np.arange(count), many)
    at = joins[row] + draw.random(len(row)) * stays[row]
    frame = person.iloc[row].reset_index(drop=True)
    frame["month"] = at
    frame = _thinned(world, frame)
    frame = frame.sort_values("month", ignore_index=True)
    size = len(frame)
    frame["session_id"] = [f"session-{number:06}" for number in range(size)]
    clients = max(12, size // 4)
    client = draw.integers(0, clients, size)
    declared = np.where(draw.random(clients) < 0.5, "a", "b")
    frame["client"] = [f"client-{number:05}" for number in client]
    frame["of_client"] = declared[client]
    frame["domain"] = np.where(draw.random(size) < 0.6, "counselling", "peer-support")
    frame["channel"] = np.where(draw.random(size) < _chat_share(world, frame), "chat", "phone")
    frame["lang"] = np.where(draw.random(size) < 0.8, "en-GB", "en-IN")
    milliseconds = (frame["month"] * DAYS_A_MONTH * 86_400_000).round()
    frame["started_at"] = pd.Timestamp(world.begins) + pd.to_timedelta(milliseconds, unit="ms")
    newer = frame["month"] >= (np.inf if world.new_model is None else world.new_model)
    frame["bundle"] = np.where(newer, "synthetic-2", "synthetic-1")
    if world.strays:
        late = _own_draw(world, 2).choice(np.flatnonzero(newer), world.strays, replace=False)
        frame.loc[late, "bundle"] = "synthetic-1"
    joined = frame.groupby("counsellor")["started_at"].min()
    return with_joining(frame, joined.to_dict()), person


def _own_draw(world: World, number: int) -> Any:
    """Random numbers of one effect, so that worlds without it stay as they are."""
    return np.random.default_rng([world.seed, number])


def _busy(world: World) -> Any:
    """Factor of each counsellor's number of sessions."""
    spread = world.unequal * _own_draw(world, 3).standard_normal(world.counsellors)
    return np.exp(spread - world.unequal**2 / 2) * max(world.volume, 1.0)


def _thinned(world: World, frame: pd.DataFrame) -> pd.DataFrame:
    """Take away the sessions of a lower volume or a missing week."""
    draw = _own_draw(world, 4)
    most = max(world.volume, 1.0)
    share = np.where(_since(frame["month"], world.training) > 0, world.volume / most, 1 / most)
    week = np.floor(frame["month"] * DAYS_A_MONTH / 7).astype(int)
    gone = draw.random(int(week.max()) + 1) < world.missing_weeks
    return frame[(draw.random(len(frame)) < share) & ~gone[week]]


def _chat_share(world: World, frame: pd.DataFrame) -> Any:
    if world.phone_leaves is None:
        return 0.7
    return 0.3 + 0.7 * np.clip(frame["month"].to_numpy() / world.phone_leaves, 0, 1)


def _common(world: World, month: Any) -> Any:
    """What all sessions of a week share: shocks that last, and the season."""
    week = np.floor(month * DAYS_A_MONTH / 7).astype(int)
    draw = _own_draw(world, 1)
    shocks = np.empty(int(week.max()) + 1)
    shocks[0] = draw.standard_normal()
    for place in range(1, len(shocks)):
        fresh = np.sqrt(1 - world.lasting**2) * draw.standard_normal()
        shocks[place] = world.lasting * shocks[place - 1] + fresh
    phase = draw.uniform(0, 2 * np.pi)
    return world.shocks * shocks[week] + world.season * np.sin(2 * np.pi * month / 12 + phase)


def _bounded_normal(draw: Any, count: int) -> Any:
    """Standardised and cut at two standard deviations, so that means stay within 0-2."""
    cut = stats.truncnorm(-2, 2)
    return cut.rvs(count, random_state=draw) / cut.std()


def _mean_level(world: World, frame: pd.DataFrame, draw: Any) -> Any:
    """Expected level of each session, without the mechanisms' own offsets."""
    slope = frame["cohort"].map(dict(world.slopes)).fillna(0.0).to_numpy(dtype=float)
    month = frame["month"].to_numpy()
    mean = world.level + world.between * frame["own"].to_numpy()
    mean = mean + slope * frame["months"].to_numpy()
    mean = mean + world.training_jump * _since(month, world.training)
    mean = mean + world.new_model_shift * (frame["bundle"] == "synthetic-2").to_numpy()
    mean = mean + world.phone_level * (frame["channel"] == "phone").to_numpy()
    mean = mean + _common(world, month)
    both = (frame["of_counsellor"] == "a") & (frame["of_client"] == "a")
    mean = mean + world.pair * both.to_numpy()
    return mean + draw.uniform(-SESSION_NOISE, SESSION_NOISE, len(frame))


def _since(month: Any, event: float | None) -> Any:
    return (month >= (np.inf if event is None else event)).astype(float)


def _turns(world: World, sessions: pd.DataFrame, mean: Any, draw: Any) -> pd.DataFrame:
    """Counsellor turns, at odd numbers of their session."""
    row = np.repeat(np.arange(len(sessions)), world.turns)
    place = np.tile(np.arange(world.turns), len(sessions))
    names = ["session_id", "bundle", "counsellor", "channel", "domain", "month", "popularity"]
    frame = sessions[names].iloc[row].reset_index(drop=True)
    frame["row"] = row
    frame["seq"] = 2 * place + 1
    frame["role"] = "counsellor"
    seconds = 30 + 60 * place + draw.integers(0, 30, len(frame))
    started = sessions["started_at"].iloc[row].reset_index(drop=True)
    frame["occurred_at"] = started + pd.to_timedelta(seconds, unit="s")
    for name in MECHANISMS:
        chance = np.clip((mean[row] + BASE[name]) / 2, 0.02, 0.98)
        frame[name] = draw.binomial(2, chance).astype(float)
    frame[TOTAL] = frame[list(MECHANISMS)].sum(axis=1)
    length = np.exp(4.0 + 0.08 * frame[TOTAL] + 0.4 * draw.standard_normal(len(frame)))
    frame["characters"] = length.round().clip(10, 600)
    frame["confidence"] = draw.uniform(0.6, 0.95, len(frame)).round(4)
    kind = draw.choice(len(STRATEGIES), size=len(frame), p=[0.3, 0.3, 0.4])
    drifts = draw.random(len(frame)) < world.drift_share * _since(
        frame["month"].to_numpy(), world.drift
    )
    kind = np.where(drifts, 0, kind)
    frame[f"{HEAD}strategy"] = np.array(STRATEGIES, dtype=object)[kind]
    frame.loc[draw.random(len(frame)) < 0.1, f"{HEAD}strategy"] = ABSTAINED
    for name in MECHANISMS:
        frame[HEAD + name] = frame[name].astype(int).astype(str)
    is_question = frame[f"{HEAD}strategy"] == "question"
    shared = draw.uniform(-0.1, 0.1, len(sessions))[row]
    for name in PERCEIVED_HEADS:
        score = 0.5 + shared + draw.uniform(-0.15, 0.15, len(frame))
        effect = world.perceived_by_question if name == "engagement" else 0.0
        frame[PERCEIVED + name] = (score + effect * is_question).clip(0, 1).round(6)
    return frame


def _aggregates(
    world: World, sessions: pd.DataFrame, turns: pd.DataFrame, person: pd.DataFrame, draw: Any
) -> pd.DataFrame:
    frame, size = sessions, len(sessions)
    means = turns.groupby("row")[[*MECHANISMS, TOTAL]].mean()
    for name in MECHANISMS:
        frame[name] = means[name].to_numpy()
    level = means[TOTAL].to_numpy() / 3
    frame["empathy_index"] = level / 2
    frame["turns"] = 2.0 * world.turns
    frame["counsellor_turns"] = float(world.turns)
    first = turns.groupby("row")["occurred_at"].min()
    frame["first_answer"] = (first - frame["started_at"]).dt.total_seconds()
    frame["reflection_to_question"] = 0.6 + 0.4 * level + draw.uniform(-0.2, 0.2, size)
    frame["complex_reflection_share"] = 0.2 + 0.1 * level + draw.uniform(-0.1, 0.1, size)
    frame["open_question_share"] = 0.4 + 0.1 * level + draw.uniform(-0.1, 0.1, size)
    frame["low_empathy_risk"] = np.clip(0.9 - 0.6 * level, 0.0, 1.0)
    frame["looked_at"] = draw.random(size) < 0.3
    points = sum(
        (world.rating.get(name, 0.0) * frame[name].to_numpy() for name in MECHANISMS),
        np.zeros(size),
    )
    popularity = person["popularity"].to_numpy()[
        pd.Index(person["counsellor"]).get_indexer(frame["counsellor"])
    ]
    frame["stars"] = RATING + points + popularity + draw.uniform(-0.8, 0.8, size)
    frame["stars"] = frame["stars"].clip(1, 5)
    share = stats.uniform.cdf(3.0 - RATING - points, -0.8, 1.6)
    frame[f"{RISK}dissatisfied"] = np.round(share, 6)
    return frame


def _with_clients(turns: pd.DataFrame, sessions: pd.DataFrame, draw: Any) -> pd.DataFrame:
    """Add a client turn before each counsellor turn."""
    client = turns[["session_id", "bundle", "occurred_at", "seq", "row"]].copy()
    client["seq"] = client["seq"] - 1
    opens = client["seq"] == 0
    started = sessions["started_at"].iloc[client["row"]].reset_index(drop=True)
    client["occurred_at"] = started.where(opens, client["occurred_at"] - pd.Timedelta(seconds=20))
    client["role"] = "client"
    client["characters"] = np.exp(4.5 + 0.4 * draw.standard_normal(len(client))).round()
    client["characters"] = client["characters"].clip(10, 800)
    client["confidence"] = 0.8
    talk = draw.choice(["change", "neutral", "sustain"], size=len(client), p=[0.3, 0.5, 0.2])
    client[f"{HEAD}talk_type"] = talk.astype(object)
    names = ["session_id", "seq", "role", "bundle", "occurred_at", "characters"]
    names += [*MECHANISMS, TOTAL, "confidence"]
    extra = [name for name in turns.columns if name.startswith((HEAD, PERCEIVED))]
    both = pd.concat([turns[[*names, *extra]], client.drop(columns="row")], ignore_index=True)
    return both.sort_values(["session_id", "seq"], ignore_index=True)


def _outcomes(world: World, sessions: pd.DataFrame, turns: pd.DataFrame, draw: Any) -> pd.DataFrame:
    longer = LENGTH_ELASTICITY * (np.log(turns["characters"].to_numpy()) - 4.0)
    common = longer + turns["popularity"].to_numpy()
    common = common + np.where(turns["domain"] == "counselling", 0.1, 0.0)
    parts = []
    for kind, rate, ratios in (
        ("like", LIKE_RATE, world.likes),
        ("reply", REPLY_RATE, world.replies),
    ):
        log_rate = np.log(rate) + common
        for name, (weak, strong) in ratios.items():
            log_rate = log_rate + np.array([0.0, weak, strong])[turns[name].astype(int)]
        given = draw.poisson(np.exp(log_rate))
        parts.append(turns.loc[np.repeat(turns.index, given), ["session_id", "seq"]])
        parts[-1]["kind"], parts[-1]["value"] = kind, 1.0
    logit = FOLLOW_LOGIT + sum(
        (ratio * sessions[name].to_numpy() for name, ratio in world.follows.items()),
        np.zeros(len(sessions)),
    )
    followed = _alike(draw, sessions["frailty"]) < 1 / (1 + np.exp(-logit))
    whole = sessions[["session_id", "stars"]].assign(seq=np.nan)
    parts.append(whole.loc[followed, ["session_id", "seq"]].assign(kind="follow", value=1.0))
    parts.append(whole.rename(columns={"stars": "value"}).assign(kind="rating"))
    found = pd.concat(parts, ignore_index=True)[["session_id", "seq", "kind", "value"]]
    return found.astype({"seq": float, "value": float})


def _alike(draw: Any, frailty: pd.Series) -> Any:
    """Uniform numbers that are correlated within counsellors (a Gaussian copula).

    So marginal probabilities are exact, which a random intercept in a logit would not leave them.
    """
    shared = np.sqrt(0.05) * frailty.to_numpy()
    return stats.norm.cdf(shared + np.sqrt(0.95) * draw.standard_normal(len(frailty)))


def _alerts(world: World, sessions: pd.DataFrame, draw: Any) -> pd.DataFrame:
    logit = ALERT_LOGIT + world.alerts_by_phone * (sessions["channel"] == "phone").to_numpy()
    chosen = _alike(draw, sessions["frailty"]) < 1 / (1 + np.exp(-logit))
    frame = sessions.loc[chosen, ["session_id", "bundle", "started_at", "month"]].copy()
    frame["episode_id"] = [f"episode-{number:06}" for number in range(len(frame))]
    frame["rule"], frame["severity"] = RULE, "warning"
    frame["fired_at"] = frame["started_at"] + pd.Timedelta(minutes=3)
    minutes = np.exp(
        ACKNOWLEDGE_LOG_MINUTES
        + world.training_haste * _since(frame["month"].to_numpy(), world.training)
        + 0.6 * draw.standard_normal(len(frame))
    )
    frame["acknowledged_at"] = frame["fired_at"] + pd.to_timedelta(
        (60_000 * minutes).round(), unit="ms"
    )
    right = draw.random(len(frame)) < 0.7
    frame["verdict"] = np.where(right, "justified", "false-alarm")
    names = ["episode_id", "rule", "severity", "session_id", "bundle"]
    names += ["fired_at", "acknowledged_at", "verdict"]
    return frame[names].reset_index(drop=True)


def _ratings(world: World, turns: pd.DataFrame, draw: Any) -> pd.DataFrame:
    """Ratings of emotional reactions; the model is right as often as its probability says."""
    chosen = turns[draw.random(len(turns)) < world.rated]
    probability = draw.uniform(0.6, 0.95, len(chosen)).round(6)
    model = chosen["emotional_reactions"].to_numpy()
    phone = (chosen["channel"] == "phone").to_numpy()
    wrong = draw.random(len(chosen)) > probability - world.errors_by_phone * phone
    other = (model + draw.integers(1, 3, len(chosen))) % 3
    return pd.DataFrame(
        {
            "session_id": chosen["session_id"].to_numpy(),
            "seq": chosen["seq"].to_numpy(dtype=float),
            "head": "emotional_reactions",
            "value": np.where(wrong, other, model).astype(float),
            "model": model.astype(float),
            "probability": probability,
        }
    )
