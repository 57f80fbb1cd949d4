"""Checks that the optional dependencies of the analyses are installed."""

from importlib.util import find_spec
from typing import Final

from stream_app.errors import RapportError

PACKAGES: Final = ("pandas", "scipy", "statsmodels", "duckdb", "pyarrow")


class AnalyticsMissing(RapportError):
    """The extra ``analytics`` is not installed."""


def require() -> None:
    """Check for the extra without importing it.

    Raises:
        AnalyticsMissing: names the missing packages and what to install.
    """
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise AnalyticsMissing(
            f"analyses need {', '.join(missing)}: install rapport with the extra `analytics` "
            "(pip install 'rapport[analytics]')"
        )
