"""Shipped rules in random sessions: what an alert quotes is worse than what it compares it with."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache
from typing import Final

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, AlertState, Expressed, Level
from stream_app.core.measures.baselines import Baseline, Usual
from stream_app.core.measures.empathy import ENOUGH_SESSIONS, EmpathyModel
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.session.environment import Policy
from stream_app.core.session.ports import Encoding, HeadScores, ScoringRequest
from stream_app.inference.bundles import bundle
from tests.fakes import START, FakeScorer, end, received, turn
from tests.rule_texts import SHIPPED

DOMAINS: Final = ("peer-support", "counselling", "customer-service", None)
BUNDLES: Final = ("default", "nano")
TENTHS = st.integers(0, 10)


class Spoken(FakeScorer):
    """Scores as the text states them in tenths: opportunity, or the levels and the answer."""

    def __init__(self, empathy: EmpathyModel) -> None:
        self.empathy = empathy

    def encode(self, texts: list[str], roles: list[Role] | None = None) -> list[Encoding]:
        return [Encoding(vectors=text.encode(), rationales={}, truncated=False) for text in texts]

    def score(self, requests: list[ScoringRequest]) -> list[HeadScores]:
        return [_scores(each) for each in requests]


def _scores(request: ScoringRequest) -> HeadScores:
    shares = [int(each) / 10 for each in request.turn.vectors.decode().split()]
    if request.turn.role is Role.CLIENT:
        calls = {"no": 1 - shares[0], "yes": shares[0]}
        talk = {"change": shares[0], "neutral": 1 - shares[0], "sustain": 0.0}
        client = {"distress": calls, "opportunity": calls, "talk_type": talk}
        return HeadScores(Expressed(), {}, client, 1.0, [])
    levels = {
        name: Level(round(2 * share), [1 - share, 0.0, share], [])
        for name, share in zip(MECHANISMS, shares, strict=False)
    }
    answer = {"no": 1 - shares[3], "yes": shares[3]}
    return HeadScores(Expressed(**levels, answer=answer), {}, {}, 1.0, [])


class Usually:
    """One channel's baseline."""

    def __init__(self, channel: Baseline | None) -> None:
        self._channel = channel

    def of_channel(self, channel: str) -> Baseline | None:
        return self._channel

    def of_counsellor(self, speaker_id: str) -> Baseline | None:
        return None


@cache
def model(name: str) -> EmpathyModel:
    found = bundle.load(bundle.SHIPPED / name).manifest.empathy
    assert found is not None
    return found


@st.composite
def baselines(draw: st.DrawFn) -> Baseline | None:
    if draw(st.booleans()):
        return None
    n = draw(st.sampled_from((ENOUGH_SESSIONS - 1, 2 * ENOUGH_SESSIONS)))
    share, mean, sd = draw(TENTHS), draw(TENTHS), draw(st.sampled_from((0.001, 0.05, 0.3)))
    answered = Usual(n, share / 10, 0.2) if draw(st.booleans()) else None
    return Baseline(index=Usual(n, mean / 10, sd), answered=answered)


@st.composite
def sessions(draw: st.DrawFn) -> list[bytes]:
    """A session of up to 20 exchanges, good at first and bad later as often as not."""
    about = {"domain": draw(st.sampled_from(DOMAINS)), "channel": "chat"}
    changes_at, strengths = draw(st.integers(0, 20)), (draw(TENTHS), draw(TENTHS))
    log, at = [], START
    for seq in range(2 * draw(st.integers(4, 20))):
        best = strengths[seq // 2 >= changes_at]
        shares = [min(10, max(0, best + draw(st.integers(-3, 3)))) for _ in range(4)]
        said = shares if seq % 2 else [draw(TENTHS)]
        at += timedelta(seconds=draw(st.sampled_from((5, 5, 200))))
        text = " ".join(map(str, said))
        log.append(turn(seq=seq, text=text, occurred_at=at.isoformat(), **about))
    return [*log, end()]


def of(pattern: str, reason: str) -> list[float]:
    found = re.search(pattern, reason)
    return [float(each) for each in found.groups()] if found else []


SHARE: Final = r"(\d) of the last (\d) .* got no empathic answer"
USUAL: Final = r"usual in [^:;]+: (\d) of (\d)\."
INDEXES: Final = r"index (\d\.\d\d); usual in [^:;]+: (\d\.\d\d)\."


def low_empathy(reason: str) -> Iterator[bool]:
    share, usual, indexes = (of(pattern, reason) for pattern in (SHARE, USUAL, INDEXES))
    assert share or indexes or reason.endswith("; no comparable sessions yet.")
    assert len([kind for kind in (usual, indexes) if kind]) <= 1
    assert share or not usual, "a share is compared with a share"
    if share:
        yield share[0] >= 1
    if share and usual:
        yield share[0] / share[1] > usual[0] / usual[1]
    if indexes:
        yield indexes[0] < indexes[1]


def sudden_drop(reason: str) -> Iterator[bool]:
    recent, earlier, rise = of(
        r"than those before: (\d\.\d\d) against (\d\.\d\d) of 6, and .* by (\d\.\d\d)\.$", reason
    )
    yield recent < earlier
    yield rise > 0


def silence(reason: str) -> Iterator[bool]:
    waited, distress = of(r"waited for (\d+) s .* \(probability (\d\.\d\d)\)\.$", reason)
    yield waited >= 90
    yield distress >= 0.8


CHECKS: Final[dict[str, Callable[[str], Iterator[bool]]]] = {
    "low-empathy": low_empathy,
    "sudden-drop": sudden_drop,
    "silence-after-distress": silence,
    "crisis-language": lambda _: iter((True,)),
}


def test_every_shipped_rule_is_checked() -> None:
    assert set(CHECKS) == SHIPPED.names


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(log=sessions(), usual=baselines(), name=st.sampled_from(BUNDLES))
def test_the_evidence_of_an_alert_is_worse_than_its_reference(
    log: list[bytes], usual: Baseline | None, name: str
) -> None:
    pipeline = Pipeline(Spoken(model(name)), Policy(WindowPolicy(), SHIPPED))
    pipeline.environment.baselines = Usually(usual)
    for alert in pipeline.process(received(log), {}).alerts:
        if alert.state is AlertState.FIRING:
            event(alert.rule)
            assert all(CHECKS[alert.rule](alert.reason)), alert.reason


def test_bad_sessions_still_fire() -> None:
    """The evidence of a session without a single empathic answer is worse than usual."""
    for domain in DOMAINS:
        about = {"domain": domain, "channel": "chat"}
        said = ("8", "0 0 0 0")
        log = [turn(seq=seq, text=said[seq % 2], **about) for seq in range(20)]
        for name in BUNDLES:
            pipeline = Pipeline(Spoken(model(name)), Policy(WindowPolicy(), SHIPPED))
            fired = [a.rule for a in pipeline.process(received(log), {}).alerts]
            assert "low-empathy" in fired, (domain, name)
