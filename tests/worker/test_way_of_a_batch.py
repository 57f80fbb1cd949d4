"""A batch takes the way that docs/architecture.md describes."""

import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from stream_app.store.stream.repository import Store
from tests.store.batches import turn
from tests.worker.processors import processor
from tests.worker.test_agents import agent_of
from tests.worker.test_traced_batches import Broker

DOCUMENT = Path(__file__).parents[2] / "docs" / "architecture.md"
ROW = re.compile(r"^\| (\d+) \| `(\S+)\.py` \| `(\w+)\.(\w+)` \|", re.MULTILINE)


async def test_a_batch_takes_the_documented_way(
    monkeypatch: pytest.MonkeyPatch, open_prepared: Callable[[], Store]
) -> None:
    way: list[int] = []

    def noted(step: int, real: Callable[..., Any], *args: Any, **options: Any) -> Any:
        way.append(step)
        return real(*args, **options)

    broker = Broker()
    rows = ROW.findall(DOCUMENT.read_text())
    for step, path, class_name, name in rows:
        owner = getattr(import_module(f"stream_app.{path.replace('/', '.')}"), class_name)
        real = getattr(owner, name)
        if name == "batches":
            real = lambda _, stream, admit: stream.taken(admit)  # noqa: E731
        note = partial(noted, int(step), real)
        monkeypatch.setattr(owner, name, lambda *args, note=note, **more: note(*args, **more))
    broker.add((turn(), None))
    await agent_of(broker, processor(open_prepared()))._consume(broker)
    assert way == [int(step) for step, *_ in rows]
    assert len(way) == 16
