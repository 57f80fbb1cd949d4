"""Asks a language model the asked questions about ended sessions."""

import signal
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import structlog

from stream_app import bootstrap
from stream_app.asking import trial
from stream_app.asking.rounds import proposals_counter
from stream_app.asking.trial import Tried
from stream_app.bootstrap import asking_process
from stream_app.core.rules.scorecards import Criterion, asked
from stream_app.errors import RapportError
from stream_app.health_server import serve_probes
from stream_app.notifications.notifier_group import NotifierGroup
from stream_app.settings import Settings

log = structlog.get_logger(__name__)


def run(settings: Settings) -> None:
    """Ask until SIGTERM or SIGINT.

    Raises:
        RapportError: no endpoint is set, no question is asked, or the database fails.
    """
    counter = proposals_counter()
    rounds = asking_process.asking_rounds(settings, _questions(settings.scorecards), counter)
    group = NotifierGroup([rounds], counter)
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: group.stop())
    log.info("ask.start", model=settings.ask_model)
    probes = (
        serve_probes(settings.health_host, settings.health_port, group, group.registry)
        if settings.health_port is not None
        else nullcontext()
    )
    with probes:
        group.run()


def once(settings: Settings) -> dict[str, int]:
    """Ask about the sessions that are waiting now; return the numbers of answers by result.

    Raises:
        RapportError: as ``run``, and if the endpoint gives no answer.
    """
    counter = proposals_counter()
    asking_process.asking_rounds(settings, _questions(settings.scorecards), counter).round()
    samples = [sample for metric in counter.collect() for sample in metric.samples]
    return {
        sample.labels["result"]: int(sample.value)
        for sample in samples
        if sample.name.endswith("_total")
    }


def try_out(settings: Settings, file: Path | None, most: int) -> Iterator[Tried]:
    """Ask the questions of a file about reviewed sessions, and compare; nothing is stored.

    Raises:
        RapportError: no endpoint is set, no question is asked, or the endpoint gives no answer.
    """
    questions = _questions(file or settings.scorecards)
    store = asking_process.asking_store(settings)
    asker = asking_process.asker(settings, store)
    yield from trial.run(store, asker, questions, most, time.monotonic)


def _questions(file: Path) -> list[Criterion]:
    found = asked(bootstrap.scorecards(file))
    if not found:
        raise RapportError(f"{file}: no question has `asked: true`, so there is nothing to ask")
    return found
