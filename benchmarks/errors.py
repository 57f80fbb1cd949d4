"""Errors that end a measurement."""

from stream_app.errors import RapportError


class Unavailable(RapportError):
    """A part cannot be measured here; the message names the missing requirement."""
