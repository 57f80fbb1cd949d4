"""What the low-empathy risk rests on, in words for people; never a word of a transcript."""

from typing import Final

from stream_app.core.empathy import SHOWN, DomainEmpathy, EmpathySummary

FEWEST: Final = 2
"""With fewer opportunities among the latest exchanges the index speaks instead."""
_SERVICES: Final = {
    "peer-support": "peer support",
    "counselling": "counselling",
    "customer-service": "customer service",
}
_MESSAGES: Final = {"counselling": "messages about feelings or change"}
_USUAL_MESSAGES: Final = "emotional messages"


def seen(found: EmpathySummary, here: DomainEmpathy, domain: str) -> str:
    """What was seen in the latest exchanges, beside what is usual in the domain.

    Begins with a small letter and ends without a full stop.
    """
    service = _SERVICES.get(domain, domain)
    latest = found.recent_opportunities
    if len(latest) < FEWEST:
        return (
            f"the recent answers show less empathy than nine in ten sessions of {service}: index "
            f"{found.recent:.2f}, usual {here.mean:.2f}"
        )
    missed = [seq for seq, answered in latest if not answered]
    usual = round((1.0 - here.answered_share) * SHOWN)
    what = _MESSAGES.get(domain, _USUAL_MESSAGES)
    turns = ", ".join(map(str, missed))
    where = f": {'turn' if len(missed) == 1 else 'turns'} {turns}" if missed else ""
    return (
        f"{len(missed)} of the last {len(latest)} {what} got no empathic answer{where}; "
        f"usual in {service}: {usual} of {SHOWN}"
    )
