"""The reader: one encoder that reads the client's words and the counsellor's answer together.

A turn that is encoded on its own shows how it sounds; whether it answers this client can only be
read from both. `examples` holds the examples, `corpora` and `written` load them, `model` is the
network, `train` fits it, `evaluation` scores what was held out.
"""

__all__ = ["corpora", "evaluation", "examples", "heads", "model", "train", "written"]
