"""Implementation of the ``rapport`` commands; ``stream_app.cli`` parses their arguments."""
