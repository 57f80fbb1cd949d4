"""Which client a counsellor's turn answers, where it says so: by its addressee, or by a name.

A turn that begins with the id of a client of the session ("Dora, …", "Hi @dora, …"), or mentions it
with an at sign, answers that client. Ids are only known as digests, without regard to case.
"""

import re
import zlib
from collections.abc import Sequence
from typing import Final

from stream_app.contracts.events import Turn

CLIENTS_KEPT: Final = 100
"""Clients of a session that are known; the latest."""
_BEGIN: Final = re.compile(r"\W*(?:\w+\s+)?@?([\w.-]*\w)\s*[,:!]")
_MENTION: Final = re.compile(r"@([\w.-]*\w)")


def digest(speaker_id: str) -> int:
    """Tells the speakers of a session apart; never 0, which is nobody.

    >>> digest("Dora") == digest("dora"), digest("dora") == digest("eve")
    (True, False)
    """
    return zlib.crc32(speaker_id.casefold().encode()) or 1


def with_client(clients: Sequence[int], speaker_id: str) -> list[int]:
    """The known clients and this one."""
    found = digest(speaker_id)
    return list(clients) if found in clients else [*clients, found][-CLIENTS_KEPT:]


def answered(turn: Turn, clients: Sequence[int]) -> int:
    """The client whom a counsellor's turn answers by its own words; 0 if it does not say.

    ``clients``: of the session. With one, every answer is to that one.
    """
    if len(clients) < 2:
        return 0
    if turn.addressee is not None:
        found = digest(turn.addressee)
        return found if found in clients else 0
    begin = _BEGIN.match(turn.text)
    names = [begin[1]] if begin is not None else []
    named = {digest(name) for name in (*names, *_MENTION.findall(turn.text))} & set(clients)
    return named.pop() if len(named) == 1 else 0
