"""Serves the console and the API until a signal stops it."""

import gc
import sys
from contextlib import nullcontext
from typing import Final

import uvicorn
from fastapi import FastAPI

from stream_app import bootstrap
from stream_app.health_server import serve_probes
from stream_app.processes.traced import traced
from stream_app.settings import Settings
from stream_app.web.http.connection_timeouts import MAX_CONNECTIONS, TimeoutProtocol
from stream_app.web.ingest.ingest import MAX_BYTES
from stream_app.web.warm_up import warm_up

SWITCH_INTERVAL: Final = 0.0005
"""Seconds that a thread may hold the GIL while another one waits.

The event loop accepts requests and writes live streams; with Python's default of 0.005 it would
wait that long each time for a thread that renders a page.
"""


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        RapportError: the database cannot be used.
    """
    with traced(settings, "rapport-web") as tracing:
        _serve(settings, bootstrap.web(settings, tracing))


def _serve(settings: Settings, app: FastAPI) -> None:
    services = app.state.services
    probes = (
        serve_probes(
            settings.health_host, settings.health_port, services.health, services.metrics.registry
        )
        if settings.health_port is not None
        else nullcontext()
    )
    warm_up(app)
    gc.collect()
    gc.freeze()  # the code lives until the exit; collecting it would halt all pages
    gc.enable()
    sys.setswitchinterval(SWITCH_INTERVAL)
    with probes:
        uvicorn.run(
            app,
            host=settings.web_host,
            port=settings.web_port,
            log_config=None,
            access_log=False,  # its lines would contain session ids
            server_header=False,
            proxy_headers=False,  # the application does it
            http=TimeoutProtocol,
            limit_concurrency=MAX_CONNECTIONS,
            ws_max_size=MAX_BYTES + 1,  # the application's own limit closes with its reason
        )
