"""Which event times can be true: neither from before the service, nor ahead of the log's clock."""

from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from stream_app.contracts.events import Event
from stream_app.errors import ContractError

EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
AHEAD: Final = timedelta(minutes=5)


class PlausibleTimes(Struct, frozen=True):
    """``earliest``: of any event. ``ahead``: how far a producer's clock may be ahead."""

    earliest: datetime = EARLIEST
    ahead: timedelta = AHEAD

    def checked(self, event: Event | ContractError, now: datetime) -> Event | ContractError:
        """The event, or why it is refused; see ``check``."""
        if isinstance(event, ContractError):
            return event
        try:
            self.check(event, now)
        except ContractError as problem:
            return problem
        return event

    def check(self, event: Event, now: datetime) -> None:
        """Refuse an event from outside the range; ``now`` is the time at which it was appended.

        Raises:
            ContractError: with code ``implausible-time``.
        """
        if event.occurred_at < self.earliest:
            raise ContractError(
                "implausible-time",
                f"the event is from before {self.earliest.isoformat()} - at `$.occurred_at`",
            )
        if event.occurred_at > now and event.occurred_at - now > self.ahead:
            raise ContractError(
                "implausible-time",
                f"the event is more than {self.ahead.total_seconds():.0f} s ahead of the time at "
                "which it was appended - at `$.occurred_at`",
            )


DEFAULT: Final = PlausibleTimes()
