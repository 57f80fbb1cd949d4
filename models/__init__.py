"""PyTorch models of expressed empathy: what makes and checks a bundle.

``data`` has the corpora, ``model`` the networks, ``fit`` their training and calibration,
``evaluate`` the figures and ``pages`` the documents made of them; ``reader`` trains the model that
reads client and answer together.
"""

__all__ = [
    "agreement",
    "bundle",
    "card",
    "data",
    "distil",
    "evaluate",
    "fit",
    "labels",
    "model",
    "pages",
    "probes",
    "reader",
]
