"""The plain copy of a turn's text that every search and model reads.

``copies.plain`` decodes markup and odd characters; ``copies.spoken`` leaves out what the speaker
only quotes as well. A copy knows the place of each of its characters in the text as it was sent.
"""

__all__ = ["copies", "mapped"]
