"""What the low-empathy risk rests on, in words for people; never a word of a transcript."""

from typing import Final

from stream_app.core.empathy import SHOWN, DomainEmpathy, EmpathySummary

FEWEST: Final = 2
"""With fewer opportunities among the latest exchanges the index speaks instead."""


def seen(found: EmpathySummary, here: DomainEmpathy) -> str:
    """What was seen in the latest exchanges, beside what is usual in the domain.

    Begins with a small letter and ends without a full stop.
    """
    latest = found.recent_opportunities
    missed = [seq for seq, answered in latest if not answered]
    if len(latest) < FEWEST or not missed:
        return (
            f"the recent answers show little empathy, index {found.recent:.2f}; "
            f"usual in {here.service}: {here.mean:.2f}"
        )
    usual = round((1.0 - here.answered_share) * SHOWN)
    turns = ", ".join(map(str, missed))
    where = f"{'turn' if len(missed) == 1 else 'turns'} {turns}"
    return (
        f"{len(missed)} of the last {len(latest)} {here.messages} got no empathic answer: {where}; "
        f"usual in {here.service}: {usual} of {SHOWN}"
    )
