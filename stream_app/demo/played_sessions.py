"""Makes what ``rapport up`` plays: sessions under way, one with an alert, and the weeks before.

Everybody types at the pace of a conversation, so a wall would take minutes to fill: the first
sessions began a while ago. One goes badly and its alert waits when the page is opened. The others
that are going to raise alerts have just begun.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from stream_app.recordings.event_files import TimedEvent, sample_events
from stream_app.recordings.replay import counsellor_of, interleaved

FIRST: Final = "peer-support-03-tired-of-tired"
"""The sample whose alert waits: it fires after three and a half minutes of seven."""
FIRST_BEGAN: Final = 235.0
"""Seconds before the start."""
CALM_ARC: Final = "warm"
"""The samples of this arc raise no alert; the others do, or may."""
APART: Final = 4.0
"""Seconds between the starts of the sessions that may raise an alert."""
STAGGER: Final = 0.618
"""Fractions of this number's multiples are spread evenly over 0 to 1, in whatever number."""
LONGEST_PART: Final = 0.75
"""How much of a calm session is over at most."""
PAST_SESSIONS_PER_WEEK: Final = 12
PAST_EVENTS_PER_SECOND: Final = 20.0
"""Slow enough for a laptop that scores the live sessions at the same time."""
_NUMBER: Final = re.compile(r"^\D+-\d+-")


def words_of_first() -> str:
    """The id of the session whose alert waits."""
    return words_of(Path(FIRST))


class Names:
    """Short ids of sessions: the sample's words, and a number from the second one on.

    >>> names = Names()
    >>> [names.of("second-glass") for _ in range(2)]
    ['second-glass', 'second-glass-2']
    """

    def __init__(self) -> None:
        self._used: Counter[str] = Counter()

    def of(self, words: str) -> str:
        """The id of the next session with these words."""
        self._used[words] += 1
        number = self._used[words]
        return words if number == 1 else f"{words}-{number}"


def words_of(sample: Path) -> str:
    """The words in the name of a sample's file.

    >>> words_of(Path("counselling-01-second-glass.jsonl"))
    'second-glass'
    """
    return _NUMBER.sub("", sample.stem)


def live_sessions(
    samples: Sequence[Path], concurrent: int, speed: float, now: datetime | None = None
) -> Iterator[TimedEvent]:
    """Endless sessions, ``concurrent`` at a time; what happened before the start comes at once.

    A sample is played again when all others were: with up to as many sessions as samples, that
    takes longer than the shortest one.
    """
    order = sorted(samples, key=lambda sample: sample.stem != FIRST)
    first, names = now or datetime.now(UTC), Names()

    def session(number: int, at: float) -> list[TimedEvent]:
        sample = order[number % len(order)]
        began = first + timedelta(seconds=at)
        name = names.of(words_of(sample))
        return sample_events(sample, name, began, speed, counsellor_of(number))

    begins = [-seconds_in(order, number) / speed for number in range(concurrent)]
    return interleaved(begins, session)


def seconds_in(order: Sequence[Path], number: int) -> float:
    """How long ago the session with this number began when the demo starts, at normal pace."""
    sample = order[number % len(order)]
    if number == 0:
        return FIRST_BEGAN
    if number < len(order) and _arc(sample) != CALM_ARC:
        return APART * (number % len(order))
    return LONGEST_PART * (number * STAGGER % 1.0) * _seconds(sample)


def past_sessions(
    samples: Sequence[Path], weeks: int, now: datetime | None = None
) -> Iterator[TimedEvent]:
    """Sessions of these weeks before today, ``PAST_SESSIONS_PER_WEEK`` each, named by their day.

    They are timed for sending, a few turns a second.
    """
    today, names = now or datetime.now(UTC), Names()
    sessions = weeks * PAST_SESSIONS_PER_WEEK
    sent = 0
    for number in range(sessions):
        sample = samples[number % len(samples)]
        began = today - timedelta(days=1 + 7 * weeks * (1 - number / sessions))
        name = names.of(f"{words_of(sample)}-{began.day}-{began:%b}".lower())
        for event in sample_events(sample, name, began, 1.0, counsellor_of(number)):
            yield TimedEvent(sent / PAST_EVENTS_PER_SECOND, event.key, event.value)
            sent += 1


def _arc(sample: Path) -> str:
    with sample.open(encoding="utf-8") as lines:
        return str(json.loads(next(lines))["arc"])


def _seconds(sample: Path) -> float:
    """The time of a sample's last event."""
    *_, last = filter(None, sample.read_text("utf-8").splitlines())
    return float(json.loads(last)["offset_s"])
