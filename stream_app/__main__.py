"""``python -m stream_app`` is the same as ``rapport``."""

from stream_app.cli import main

if __name__ == "__main__":
    main()
