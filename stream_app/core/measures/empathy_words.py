"""The evidence for the low-empathy risk in words, without transcript text.

Evidence is quoted beside what is usual, in the same unit, and only if it is worse: a reader who is
told "2 of 3; usual: 3 of 4" has been given an argument against the alert.
"""

from typing import Final

from msgspec import Struct

from stream_app.core.measures.baselines import Baseline, Usual
from stream_app.core.measures.empathy import SHOWN, SPREAD, DomainEmpathy, EmpathySummary

FEWEST: Final = 2
"""Minimum number of recent opportunities to report; below it the index is reported."""
CHANNEL: Final = "this channel"
NOT_COMPARABLE: Final = "no comparable sessions yet"


class Evidence(Struct, frozen=True):
    """``words``: in lower case, without a full stop; ``turns``: the client turns it is about."""

    words: str
    turns: list[int]


class Reference(Struct, frozen=True):
    """The usual share of unanswered opportunities and the usual index in ``place``."""

    place: str
    unanswered: float | None
    index: float

    @property
    def missed(self) -> int | None:
        """The share as a number of ``SHOWN`` opportunities, as it is printed."""
        return None if self.unanswered is None else round(self.unanswered * SHOWN)


def reference(here: DomainEmpathy, own: Baseline | None, *, stated: bool) -> Reference | None:
    """Return the reference that a session is compared with; None without comparable sessions.

    Args:
        here: the definition that the session is scored with.
        own: the channel's baseline if that is the reference (``empathy.channel_reference``).
        stated: whether ``here`` is of the session's own domain or approach, not of the default.
    """
    if own is not None and own.index is not None:
        answered = own.answered
        unanswered = None if answered is None else 1.0 - answered.mean
        return Reference(CHANNEL, unanswered, own.index.mean) if _tells(own.index) else None
    if not stated or here.quantiles[-1] - here.quantiles[0] < SPREAD:
        return None
    return Reference(here.service, 1.0 - here.answered_share, here.mean)


def evidence(
    found: EmpathySummary, here: DomainEmpathy, usual: Reference | None
) -> Evidence | None:
    """Evidence for the low-empathy risk in the latest exchanges; None if there is none."""
    return _unanswered(found, here, usual) or _index(found, here, usual)


def _tells(usual: Usual) -> bool:
    return 2 * usual.sd >= SPREAD


def _unanswered(
    found: EmpathySummary, here: DomainEmpathy, usual: Reference | None
) -> Evidence | None:
    """More of the latest opportunities than usual got no empathic answer."""
    latest = found.recent_opportunities
    missed = [seq for seq, answered in latest if not answered]
    if len(latest) < FEWEST or not missed:
        return None
    share = len(missed) / len(latest)
    words = f"{len(missed)} of the last {len(latest)} {here.messages} got no empathic answer"
    if usual is None:
        few = len(missed) < FEWEST or share <= 1 / 2
        return None if few else Evidence(f"{words}; {NOT_COMPARABLE}", missed)
    if usual.unanswered is None or usual.missed is None:
        return (
            Evidence(f"{words}; {_compared(found, usual)}", missed) if _low(found, usual) else None
        )
    if share <= max(usual.unanswered, usual.missed / SHOWN):
        return None
    return Evidence(f"{words}; usual in {usual.place}: {usual.missed} of {SHOWN}", missed)


def _index(found: EmpathySummary, here: DomainEmpathy, usual: Reference | None) -> Evidence | None:
    """The index of the latest exchanges is lower than usual."""
    words = "the recent answers show little empathy"
    if usual is None:
        low = found.recent < here.low
        said = f"{words}, index {found.recent:.2f}; {NOT_COMPARABLE}"
        return Evidence(said, found.weakest) if low else None
    if not _low(found, usual):
        return None
    return Evidence(f"{words}, {_compared(found, usual)}", found.weakest)


def _low(found: EmpathySummary, usual: Reference) -> bool:
    """Whether the index is lower than usual as both are printed."""
    return round(found.recent, 2) < round(usual.index, 2)


def _compared(found: EmpathySummary, usual: Reference) -> str:
    return f"index {found.recent:.2f}; usual in {usual.place}: {usual.index:.2f}"
