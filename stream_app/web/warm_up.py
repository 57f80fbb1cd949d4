"""Does before the first visit what would otherwise slow down the first visits to each page.

A new process would compile templates, analyse routes, and import statistics and migrations while
everybody waits for the same interpreter.
"""

import importlib
from typing import Final

from fastapi import FastAPI
from starlette.routing import BaseRoute, Mount
from starlette.types import Scope

from stream_app.store.stream import schema
from stream_app.web.console.rendering import templates

STATISTICS: Final = ("scipy.special",)
"""What pages import when they are first opened."""
_NOWHERE: Final = "/no-such-page"


def warm_up(app: FastAPI) -> None:
    """Load all templates, routes, statistics, and the number of the newest migration."""
    for name in templates.env.list_templates():
        templates.env.get_template(name)
    for module in STATISTICS:
        importlib.import_module(module)
    schema.newest()
    _analyse(app.routes)


def _analyse(routes: list[BaseRoute]) -> None:
    """FastAPI analyses an included router when it is first asked whether a path matches."""
    for route in routes:
        scope: Scope = {"type": "http", "method": "GET", "path": _NOWHERE, "headers": []}
        route.matches(scope)
        if isinstance(route, Mount):
            _analyse(list(route.routes))
