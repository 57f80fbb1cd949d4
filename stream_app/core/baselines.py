"""What is usual for a channel or a counsellor: an input of the core, never read in mid-stream.

A session takes the baselines of its channel and of its first counsellor when it first hears of
them, and keeps them to its end, so that a session never depends on what others do meanwhile.
"""

from typing import Protocol

from msgspec import Struct


class Usual(Struct, frozen=True, array_like=True):
    """Mean and standard deviation over ``n`` ended sessions."""

    n: int
    mean: float
    sd: float


class Baseline(Struct, frozen=True, array_like=True):
    """Of a channel or counsellor: its sessions' last risk, mean empathy total (0-6) and index.

    ``answered``: the share of empathic opportunities that were answered, over sessions with one.
    """

    risk: Usual | None = None
    empathy: Usual | None = None
    index: Usual | None = None
    answered: Usual | None = None


class Pinned(Struct, frozen=True, omit_defaults=True):
    """What a session has taken; ``counsellor_known`` once its first counsellor turn has come."""

    channel: Baseline | None = None
    counsellor: Baseline | None = None
    counsellor_known: bool = False


class BaselineBook(Protocol):
    """Where baselines are looked up. Adapters: ``store.baselines``, ``NoBaselines``."""

    def of_channel(self, channel: str) -> Baseline | None:
        """The channel's baseline, if there are enough sessions for one."""

    def of_counsellor(self, speaker_id: str) -> Baseline | None:
        """The counsellor's baseline; the speaker's id is not kept."""


class NoBaselines:
    """Nobody has a baseline."""

    def of_channel(self, channel: str) -> Baseline | None:  # noqa: ARG002  # the port's name
        """None."""
        return None

    def of_counsellor(self, speaker_id: str) -> Baseline | None:  # noqa: ARG002  # the port's name
        """None."""
        return None
