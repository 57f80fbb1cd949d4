"""Mutated messages through a real worker: each is stored, counted or dead-lettered."""

import re

from stream_app.worker.kafka.broker import free_port
from tests.conftest import NewService
from tests.e2e.test_health import answer
from tests.fuzz import SECRET, messages

COUNT = 3000


def fates(port: int) -> dict[str, int]:
    """The worker's counts of processed events."""
    found = re.findall(
        r'rapport_events_total\{fate="([\w-]+)"\} (\d+)', answer(port, "/metrics")[1]
    )
    return {fate: int(count) for fate, count in found}


def test_every_message_is_accounted_for(new_service: NewService) -> None:
    port = free_port()
    service = new_service(health_port=port)
    worker = service.start_worker()
    service.send(list(messages(COUNT, seed=2)))
    service.wait_for(lambda: sum(fates(port).values()) >= COUNT, "the log is read to its end")
    found = fates(port)
    assert sum(found.values()) == COUNT, found
    assert found["accepted"] > COUNT / 10
    assert found["dead-letter"] > COUNT / 10
    # They are published after the batch that counts them is stored.
    topic = service.settings.dead_letter_topic
    service.wait_for(
        lambda: len(service.messages(topic)) >= found["dead-letter"], "they are published"
    )
    letters = service.messages(topic)
    assert len(letters) == found["dead-letter"]
    for letter in letters:
        assert SECRET.encode() not in dict(letter.headers)["rapport-dead-letter"]
    assert SECRET not in (service.folder / "worker.log").read_text("utf-8", "replace")
    assert worker.poll() is None
