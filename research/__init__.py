"""Published methods, run on the folds of our models, and the comparison of all.

Outside the product: `make research` runs all of it, in hours on two cores.
"""

__all__ = [
    "micromodels",
]
