"""Baselines of channels and counsellors: an input of the core, fixed per session.

A session takes the baselines of its channel and its first counsellor when these become known, and
keeps them until its end, so that it does not depend on other live sessions.
"""

from typing import Protocol

from msgspec import Struct


class Usual(Struct, frozen=True, array_like=True):
    """Mean and standard deviation over ``n`` ended sessions."""

    n: int
    mean: float
    sd: float


class Baseline(Struct, frozen=True, array_like=True):
    """A channel's or counsellor's last risks, mean empathy totals (0-6) and indices.

    ``answered``: the share of answered opportunities, over sessions that had any.
    """

    risk: Usual | None = None
    empathy: Usual | None = None
    index: Usual | None = None
    answered: Usual | None = None


class Pinned(Struct, frozen=True, array_like=True):
    """A session's baselines; ``counsellor_known`` after its first counsellor turn."""

    channel: Baseline | None = None
    counsellor: Baseline | None = None
    counsellor_known: bool = False


class BaselineBook(Protocol):
    """Port for baselines. Adapters: ``store.baselines``, ``NoBaselines``."""

    def of_channel(self, channel: str) -> Baseline | None:
        """The channel's baseline, if it has enough sessions."""

    def of_counsellor(self, speaker_id: str) -> Baseline | None:
        """The counsellor's baseline; the speaker's id is not stored."""


class NoBaselines:
    """An adapter without baselines."""

    def of_channel(self, channel: str) -> Baseline | None:  # noqa: ARG002  # the port's name
        """Always None."""
        return None

    def of_counsellor(self, speaker_id: str) -> Baseline | None:  # noqa: ARG002  # the port's name
        """Always None."""
        return None
