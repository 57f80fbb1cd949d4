"""What a web process does before its first visit."""

import subprocess
import sys

from fastapi import FastAPI

from stream_app.web import api, console
from stream_app.web.console.rendering import templates
from stream_app.web.warm_up import STATISTICS, warm_up

FIRST_VISITS = """
import sys
from fastapi import FastAPI
from stream_app.web import console
from stream_app.web.warm_up import warm_up

app = FastAPI()
app.router.routes.extend(console.router.routes)
warm_up(app)
before = set(sys.modules)
from stream_app.store.stream import schema
from stream_app.store.alerts import precision
from stream_app.findings import agreement, trends
precision.precision_of("low-empathy", 3, 4)
trends.interval([0.0, 1.0, 2.0])
agreement.kappa(((10, 5), (5, 10)))
schema.newest()
later = {"scipy", "numpy", "statsmodels", "pandas", "alembic"}
print([name for name in set(sys.modules) - before if name.partition(".")[0] in later])
print([name for name in ("statsmodels", "pandas", "scipy.stats") if name in sys.modules])
"""


def test_every_template_compiles_and_is_kept() -> None:
    warm_up(FastAPI())
    names = templates.env.list_templates()
    assert len(names) > 50
    assert templates.env.cache is not None
    assert len(templates.env.cache) >= len(names)


def test_routes_of_console_and_api_are_analysed() -> None:
    app = FastAPI()
    app.router.routes.extend(console.router.routes)
    within = FastAPI()
    for router in api.ROUTERS:
        within.include_router(router)
    app.mount(api.PREFIX, within)
    asked: list[str] = []
    for route in within.routes:
        asked_of(route, asked)
    warm_up(app)
    assert len(asked) == len(within.routes)


def asked_of(route: object, asked: list[str]) -> None:
    """Note the paths about which a route is asked."""
    matches = route.matches  # type: ignore[attr-defined]

    def noted(scope: dict[str, object]) -> object:
        asked.append(str(scope["path"]))
        return matches(scope)

    route.matches = noted  # type: ignore[attr-defined]


def test_no_visit_imports_statistics_or_migrations_and_no_process_the_large_ones() -> None:
    assert STATISTICS
    done = subprocess.run(
        [sys.executable, "-c", FIRST_VISITS], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["[]", "[]"]
