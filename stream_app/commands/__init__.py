"""What the ``rapport`` commands do; ``stream_app.cli`` only parses arguments."""
