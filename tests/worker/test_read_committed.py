"""No consumer of the service sees records of open or aborted transactions."""

import ast
from pathlib import Path

import stream_app
from stream_app.settings import Settings
from stream_app.worker.kafka import app as faust_app

SOURCES = Path(stream_app.__file__).parent


def is_a_consumer(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "AIOKafkaConsumer"
    )


def test_every_consumer_is_created_for_committed_records() -> None:
    found = [
        (file.name, ast.unparse(node))
        for file in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if is_a_consumer(node)
    ]
    assert len(found) >= 5
    wrong = [each for each in found if "isolation_level='read_committed'" not in each[1]]
    assert wrong == []


async def test_the_workers_consumer_reads_committed_records() -> None:
    app = faust_app.create(Settings())
    thread = app.consumer._thread
    try:
        consumer = thread._create_worker_consumer(app.transport)
        assert consumer._isolation_level == "read_committed"
        await consumer.stop()
    finally:
        thread.thread_loop.close()
