"""The evidence for the low-empathy risk in words, without transcript text."""

from typing import Final

from stream_app.core.baselines import Baseline
from stream_app.core.empathy import SHOWN, DomainEmpathy, EmpathySummary

FEWEST: Final = 2
"""Minimum number of recent opportunities to report; below it the index is reported."""
CHANNEL: Final = "this channel"


def seen(found: EmpathySummary, here: DomainEmpathy, own: Baseline | None = None) -> str:
    """Describe the latest exchanges and the usual share in the reference.

    ``own``: the channel's baseline if that was the reference (``empathy.channel_reference``);
    otherwise the reference is ``here``. Starts in lower case, without a full stop.
    """
    latest = found.recent_opportunities
    missed = [seq for seq, answered in latest if not answered]
    if len(latest) < FEWEST or not missed:
        return f"the recent answers show little empathy, {_index(found, here, own)}"
    turns = ", ".join(map(str, missed))
    where = f"{'turn' if len(missed) == 1 else 'turns'} {turns}"
    return (
        f"{len(missed)} of the last {len(latest)} {here.messages} got no empathic answer: {where}; "
        f"{_share(here, own) or _index(found, here, own)}"
    )


def _share(here: DomainEmpathy, own: Baseline | None) -> str | None:
    """The usual share of unanswered opportunities; None if unknown for a channel."""
    if own is None:
        place, answered = here.service, here.answered_share
    elif own.answered is not None:
        place, answered = CHANNEL, own.answered.mean
    else:
        return None
    return f"usual in {place}: {round((1.0 - answered) * SHOWN)} of {SHOWN}"


def _index(found: EmpathySummary, here: DomainEmpathy, own: Baseline | None) -> str:
    place, mean = here.service, here.mean
    if own is not None and own.index is not None:
        place, mean = CHANNEL, own.index.mean
    return f"index {found.recent:.2f}; usual in {place}: {mean:.2f}"
