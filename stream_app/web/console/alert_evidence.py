"""What an alert is about: the exchanges themselves, and what an answer was expected to do.

Alerts have numbers and no words: these are read from the transcript, for people who may read it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from stream_app.contracts.events import Domain
from stream_app.store.accounts.people import Person
from stream_app.store.alerts.alerts import AlertRead
from stream_app.store.sessions import exchanges
from stream_app.store.sessions.exchanges import ExchangeRead
from stream_app.store.stream.repository import Store
from stream_app.web.http.path_segments import path_segment

QUOTED: Final = 3
"""Exchanges shown with an alert, the latest."""
_SOON: Final = "an answer without a long wait"
_READ: Final = "that somebody reads these words now"
_FEELING: Final = "words that show the feeling was understood, or a question about it"
_TROUBLE: Final = "words that acknowledge the trouble, besides the answer itself"
_EMPATHY: Final = ("low_empathy_risk", "risk", "index", "empathy_", "empathy.")
"""What the variables of a rule about empathy begin with."""

Quotes = Mapping[str, Sequence[ExchangeRead]]
"""Exchanges by ``episode_id``."""


def load(store: Store, person: Person, found: Sequence[AlertRead]) -> Quotes:
    """The exchanges of these alerts, for who may read them; the caller audits the read."""
    if not person.reads_transcripts:
        return {}
    wanted: dict[str, set[int]] = {}
    for alert in found:
        if alert.has_fired:
            wanted.setdefault(alert.session_id, set()).update(alert.turns[-QUOTED:])
    known = exchanges.around(
        store, person.scope, {session_id: sorted(seqs) for session_id, seqs in wanted.items()}
    )
    return {
        alert.episode_id: _of_turns(known.get(alert.session_id, {}), alert.turns[-QUOTED:])
        for alert in found
        if alert.has_fired
    }


def _of_turns(known: Mapping[int, ExchangeRead], seqs: Sequence[int]) -> list[ExchangeRead]:
    """The exchanges of these turns, each once."""
    found = [known[seq] for seq in seqs if seq in known]
    return list({each.seq: each for each in found}.values())


def expected(alert: AlertRead) -> str | None:
    """What the rule expected of an answer; None for a rule about something else."""
    names = alert.values
    if "waiting_distress" in names or "waiting_seconds" in names:
        return _SOON
    if "crisis_language" in names:
        return _READ
    if any(name.startswith(_EMPATHY) for name in names):
        return _TROUBLE if alert.domain == Domain.CUSTOMER_SERVICE.value else _FEELING
    return None


def turn_addresses(page_of: Callable[[int], int]) -> Callable[[str], Callable[[int], str]]:
    """The address of each turn of a session."""

    def address(session_id: str, seq: int) -> str:
        return f"/sessions/{path_segment(session_id)}?page={page_of(seq)}#turn-{seq}"

    return lambda session_id: partial(address, session_id)
