"""The ``rapport`` command: parses arguments, calls the rooms, prints errors.

A module for each subject; a command imports what it needs when it runs, so that ``--help`` is fast.
"""

from stream_app.cli.root import app, main

__all__ = ["app", "main"]
