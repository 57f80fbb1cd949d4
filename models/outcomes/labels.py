"""Definitions of the outcomes: the judge, the sessions that count, and the exclusions."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean

from models.data.rated_sessions import GOOD, LOW, SERVICE, RatedSession, Source
from models.evaluate.annomi_quality import topic_of
from stream_app.contracts.events import Approach, Domain

NEUTRAL = 3.0


@dataclass(frozen=True)
class OutcomeSpec:
    """One outcome: the sessions that its model applies to, and its training sessions.

    `label` describes a session that counts as 1, `other` one that counts as 0.
    """

    name: str
    domain: str
    approach: str | None
    sources: tuple[Source, ...]
    label: str
    other: str

    def truth(self, session: RatedSession) -> bool | None:
        """Whether the session had the outcome; None if unrated or neither."""
        if session.source not in self.sources:
            return None
        if self.name == CHAT_FAILED:
            if session.source == "esconv_failed":
                return True
            return False if session.empathy in GOOD else None
        if self.name == LOW_SATISFACTION:
            return mean(session.overall) < NEUTRAL if session.overall else None
        return None if session.quality is None else session.quality == "low"


CHAT_FAILED, LOW_SATISFACTION = "chat_failed", "low_satisfaction"
LOW_MI_QUALITY = "low_mi_quality"

SPECS: tuple[OutcomeSpec, ...] = (
    OutcomeSpec(
        CHAT_FAILED,
        Domain.PEER_SUPPORT.value,
        None,
        ("esconv", "esconv_failed"),
        "the chat is in ESConv's file of failed chats, where its publisher put chats in which "
        "distress did not fall, a survey was low, or the chat was not finished",
        "an ordinary ESConv chat that its seeker rated 4 or 5 for empathy; ordinary chats with "
        "another or no rating are left out",
    ),
    OutcomeSpec(
        LOW_SATISFACTION,
        Domain.CUSTOMER_SERVICE.value,
        None,
        SERVICE,
        "the mean of the raters' overall ratings of a service dialogue is below 3, the neutral "
        "point of the scale: more dissatisfaction than satisfaction",
        "a mean of 3 or more",
    ),
    OutcomeSpec(
        LOW_MI_QUALITY,
        Domain.COUNSELLING.value,
        Approach.MOTIVATIONAL_INTERVIEWING.value,
        ("annomi",),
        "AnnoMI's publisher calls the recording one of low-quality motivational interviewing",
        "one of high quality",
    ),
)
"""An absolute threshold, unlike the lowest third, means the same in every corpus (13-27 % of one).
"""


def rating(session: RatedSession) -> float | None:
    """The rating of the whole session, 1-5, by the seeker or averaged over raters."""
    if session.source in SERVICE:
        return mean(session.overall) if session.overall else None
    return None if session.empathy is None else float(session.empathy)


def group_of(session: RatedSession) -> str:
    """Sessions that must be held out together: those of one topic in AnnoMI."""
    return f"topic:{topic_of(session)}" if session.source == "annomi" else session.key


@dataclass(frozen=True)
class Slice:
    """A comparison within an outcome: 1 against 0 by session; pairs must share a `stratum`."""

    name: str
    truth: dict[int, bool]
    stratum: dict[int, str]


def slices(spec: OutcomeSpec, sessions: list[RatedSession]) -> list[Slice]:
    """Comparisons in which recognising the file, the corpus or the topic does not help."""
    members = {i: s for i, s in enumerate(sessions) if s.source in spec.sources}
    if spec.name == CHAT_FAILED:
        return _esconv_slices(members)
    known = {i: truth for i, s in members.items() if (truth := spec.truth(s)) is not None}
    if spec.name == LOW_SATISFACTION:
        found = [
            Slice(f"within {source}", part, dict.fromkeys(part, source))
            for source in spec.sources
            if (part := {i: known[i] for i in known if members[i].source == source})
        ]
        return [*found, Slice("pairs of one corpus", known, {i: members[i].source for i in known})]
    return [Slice("pairs of one topic", known, {i: topic_of(members[i]) for i in known})]


def _esconv_slices(members: dict[int, RatedSession]) -> list[Slice]:
    def rated(*sources: Source) -> dict[int, bool]:
        return {
            i: s.empathy in LOW
            for i, s in members.items()
            if s.source in sources and s.empathy in (*LOW, *GOOD)
        }

    both_good = {i: s.source == "esconv_failed" for i, s in members.items() if s.empathy in GOOD}
    return [
        Slice(name, truth, dict.fromkeys(truth, ""))
        for name, truth in (
            ("within the failed file, rated 1-2 against 4-5", rated("esconv_failed")),
            ("within the ordinary file, rated 1-2 against 4-5", rated("esconv")),
            ("failed against ordinary file, both rated 4-5", both_good),
        )
    ]
