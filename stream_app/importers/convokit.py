"""Reads ConvoKit corpora: folders with utterances, speakers and conversations.

One utterance that cannot be used does not refuse the corpus: it becomes an event that the contract
refuses with a reason, in the place of its line.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from stream_app.contracts import surrogates
from stream_app.contracts.events import ROLE_ALIASES, Turn, decode
from stream_app.contracts.plausible import EARLIEST
from stream_app.errors import ContractError
from stream_app.importers.imported import ImportRefused, Item, Skipped, identifier, role_of

UTTERANCES: Final = "utterances.jsonl"
SPEAKERS: Final = "speakers.json"
OLD_SPEAKERS: Final = "users.json"
"""The name of the speakers' file in corpora of before 2020."""
CONVERSATIONS: Final = "conversations.json"
UNTIMED: Final = EARLIEST.timestamp()
"""Start of the sessions of a corpus without dates, as a Unix time."""
LONGEST_SESSION: Final = 3650 * 86_400.0
MILLISECONDS: Final = 1e11
"""Larger times are in thousandths, or thousandths of these: as seconds, after the year 5000."""
_KEPT: Final = ("domain", "lang", "consent", "channel", "team")


class _Utterance(Struct, frozen=True):
    """A line of the corpus. ``at``: its Unix time, None if it states none."""

    line: int
    session_id: str
    fields: dict[str, Any]
    at: float | None


def items(folder: Path) -> Iterator[Item]:
    """The turns of a corpus, and the utterances that are none.

    Raises:
        ImportRefused: the folder is no corpus.
    """
    numbers: Counter[str] = Counter()  # without those of the utterances that are left out
    for number, raw in enumerate(events(folder), 1):
        try:
            event = decode(raw) if raw else None
        except ContractError as problem:
            yield Skipped(f"line {number}", f"{problem.code}: {problem.detail}")
        else:
            if isinstance(event, Turn):
                yield structs.replace(event, seq=numbers[event.session_id])
                numbers[event.session_id] += 1


def events(folder: Path, on_read: Callable[[int], object] = lambda _: None) -> Iterator[bytes]:
    """An event for each line of the utterances, ``b""`` for blank lines.

    The turns of a conversation are in the order of their time, in the lines of its utterances; what
    the contract will refuse stays in its own line.

    Args:
        folder: the corpus. A role is needed in ``meta`` of the utterances or of their speakers.
        on_read: gets the number of bytes of each line.

    Raises:
        ImportRefused: the folder is no corpus, or nobody in it has a role.
    """
    old = (folder / OLD_SPEAKERS).exists() and not (folder / SPEAKERS).exists()
    speakers = _table(folder, OLD_SPEAKERS if old else SPEAKERS)
    conversations = _table(folder, CONVERSATIONS)
    lines = _text(folder, UTTERANCES).rstrip("\n").split("\n")
    found: list[bytes] = [b""] * len(lines)
    given: dict[int, dict[str, Any]] = {}
    for number, line in enumerate(lines):
        raw = line.encode()
        on_read(len(raw) + 1)
        if (read := _read(raw)) is not None:
            given[number] = read
        elif line.strip():
            found[number] = raw  # the contract says what is wrong with it
    sessions = _sessions(given.values())
    by_session: dict[str, list[_Utterance]] = {}
    roles = False
    for number, fields in given.items():
        try:
            utterance = _utterance(number, fields, sessions, conversations, speakers)
        except (ValueError, KeyError, TypeError, AttributeError):
            found[number] = lines[number].encode()
            continue
        roles = roles or role_of(utterance.fields["role"]) is not None
        by_session.setdefault(utterance.session_id, []).append(utterance)
    if by_session and not roles:
        raise ImportRefused(
            f"{folder / UTTERANCES}: neither the utterances nor their speakers have a role in "
            f"`meta`; one of {', '.join(ROLE_ALIASES)} is needed"
        )
    for session in by_session.values():
        for number, raw in _placed(session):
            found[number] = raw
    yield from found


def _placed(session: Sequence[_Utterance]) -> Iterator[tuple[int, bytes]]:
    """A line for each event of a conversation: valid ones share theirs in the order of time."""
    valid: list[bytes] = []
    lines: list[int] = []
    seq = 0
    for utterance, at in _in_time(session):
        fields = dict(utterance.fields)
        known = role_of(fields["role"]) is not None
        if known:  # a number without a turn would be a gap
            fields["seq"], seq = seq, seq + 1
        if "occurred_at" not in fields:
            fields["occurred_at"] = datetime.fromtimestamp(at, UTC).isoformat()
        raw = msgspec.json.encode(fields)
        if known and _is_valid(raw):
            valid.append(raw)
            lines.append(utterance.line)
        else:
            yield utterance.line, raw
    yield from zip(sorted(lines), valid, strict=True)


def _in_time(session: Sequence[_Utterance]) -> list[tuple[_Utterance, float]]:
    """Order by time; an utterance without one follows the one before it in the file."""
    timed: list[tuple[_Utterance, float]] = []
    if all(utterance.at is None for utterance in session):
        return [(utterance, UNTIMED + n) for n, utterance in enumerate(session)]
    latest = next(utterance.at for utterance in session if utterance.at is not None)
    for utterance in session:
        latest = latest if utterance.at is None else utterance.at
        timed.append((utterance, latest))
    return sorted(timed, key=lambda item: item[1])


def _read(raw: bytes) -> dict[str, Any] | None:
    """The object in a line, or None; half characters, which no event may have, are none."""
    try:
        found = json.loads(raw) if surrogates.masked(raw) == raw else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _utterance(
    line: int,
    given: dict[str, Any],
    sessions: Mapping[str, str],
    conversations: Mapping[str, Any],
    speakers: Mapping[str, Any],
) -> _Utterance:
    """An utterance's event without number and time; a time that cannot be read is in it."""
    own, speaker = str(given["id"]), given.get("speaker") or given.get("user")
    session = sessions[own]
    meta = _meta(conversations.get(session)) | _meta(speakers.get(str(speaker)))
    meta |= given.get("meta") or {}
    role = role_of(str(meta.get("role")))
    fields: dict[str, Any] = {
        "type": "turn",
        "session_id": identifier(session),
        "turn_id": identifier(own),
        "role": str(meta.get("role")) if role is None else str(meta["role"]).strip().lower(),
    }
    if speaker:
        fields["speaker_id"] = identifier(str(speaker))
    if "text" in given:
        fields["text"] = given["text"] if given["text"] is not None else ""
    fields |= {key: meta[key] for key in _KEPT if key in meta}
    at = None
    try:
        at = _unix(given.get("timestamp"))
    except (ValueError, TypeError, OverflowError, OSError):
        fields["occurred_at"] = str(given["timestamp"])
    return _Utterance(line, session, fields, at)


def _sessions(utterances: Iterable[dict[str, Any]]) -> dict[str, str]:
    """The conversation of each utterance: as stated, or of the one that it replies to."""
    stated: dict[str, str] = {}
    parents: dict[str, str] = {}
    for given in utterances:
        own, parent = str(given.get("id")), given.get("reply-to", given.get("reply_to"))
        session = given.get("conversation_id")
        session = given.get("root") if session in (None, "") else session
        if session not in (None, ""):
            stated[own] = str(session)
        elif parent is not None:
            parents[own] = str(parent)
        else:
            stated[own] = own
    for own in parents:
        chain = {own: None}  # in order; replies may go in circles
        last = own
        while last not in stated and (last := parents.get(last, last)) not in chain:
            chain[last] = None
        stated.update(dict.fromkeys(chain, stated.get(last, last)))
    return stated


def _unix(given: Any) -> float | None:
    """Unix time of a timestamp; small numbers count from UNTIMED.

    Raises:
        ValueError, TypeError, OverflowError, OSError: it is no time.
    """
    if given is None or given == "":
        return None
    try:
        seconds = float(given)
    except ValueError:
        stated = datetime.fromisoformat(given)
        return (stated if stated.tzinfo else stated.replace(tzinfo=UTC)).timestamp()
    if math.isnan(seconds):
        return None
    while MILLISECONDS <= seconds < math.inf:
        seconds /= 1000
    if 0.0 <= seconds < LONGEST_SESSION:
        seconds += UNTIMED
    datetime.fromtimestamp(seconds, UTC)
    return seconds


def _is_valid(raw: bytes) -> bool:
    try:
        return isinstance(decode(raw), Turn)
    except ContractError:
        return False


def _table(folder: Path, name: str) -> Mapping[str, Any]:
    try:
        found = json.loads(_text(folder, name))
    except (ValueError, RecursionError):
        raise ImportRefused(f"{folder / name} is not valid JSON: export the corpus again") from None
    if not isinstance(found, dict):
        raise ImportRefused(f"{folder / name} is not a JSON object by id: export the corpus again")
    return found


def _text(folder: Path, name: str) -> str:
    try:
        return (folder / name).read_text("utf-8-sig")
    except OSError as problem:
        raise ImportRefused(
            f"{folder} is not a ConvoKit corpus with {UTTERANCES}, {SPEAKERS} and "
            f"{CONVERSATIONS}: {name} cannot be read ({problem.strerror})"
        ) from None
    except UnicodeDecodeError:
        raise ImportRefused(f"{folder / name} is not in UTF-8: save it in UTF-8") from None


def _meta(item: Any) -> dict[str, Any]:
    """``meta`` of a speaker or conversation; older corpora omit the wrapper."""
    item = item or {}
    return dict(item.get("meta", item) or {})
