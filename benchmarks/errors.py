"""What a measurement stops with."""

from stream_app.errors import RapportError


class Unavailable(RapportError):
    """A part cannot be measured here; the message says what is missing."""
