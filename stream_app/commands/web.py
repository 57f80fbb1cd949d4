"""``rapport web``: the console and the API, until a signal ends them."""

import uvicorn

from stream_app import bootstrap
from stream_app.settings import Settings


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        RapportError: the database is not usable.
    """
    uvicorn.run(
        bootstrap.web(settings),
        host=settings.web_host,
        port=settings.web_port,
        log_config=None,
        access_log=False,  # its lines would name who was looked at
        server_header=False,
    )
