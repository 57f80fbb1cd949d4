"""An instrumented ``rapport worker``.

``python -m benchmarks.load.worker FOLDER`` records its commits.

The only change is clocks around ``Store.commit`` and the ONNX sessions, which cost a few
microseconds per batch. With ``--stand-in``, stand-ins answer instead of the sessions.
"""

import sys
from pathlib import Path
from typing import Any

from benchmarks.load import stand_in_sessions
from benchmarks.load.clocks import ModelClock
from benchmarks.load.commits import CommitWriter
from benchmarks.load.consumer_group import STAND_IN
from stream_app import bootstrap, cli
from stream_app.core.session.batch import BatchResult
from stream_app.inference.scorer import OnnxScorer
from stream_app.settings import Settings
from stream_app.store.stream.repository import Store


def install(folder: Path, *, stand_in: bool = False) -> None:
    """Patch ``bootstrap`` to wire instrumented sessions and an instrumented store."""
    clock = ModelClock()
    load_scorer, open_prepared = bootstrap.scorer, bootstrap.prepared_store

    def watched_scorer(settings: Settings) -> OnnxScorer:
        loaded: Any = load_scorer(settings)
        if stand_in:
            stand_in_sessions.install(loaded, bootstrap.pipeline(settings, loaded))
        for part in (loaded.encoder, loaded.head):
            part.session = clock.watch(part.session)
        return loaded  # type: ignore[no-any-return]

    def prepared_store(settings: Settings, scorer: OnnxScorer) -> Store:
        store: Any = open_prepared(settings, scorer)
        commits = CommitWriter(folder)
        commit = store.commit

        def watched(result: BatchResult, *args: Any, **kwargs: Any) -> Any:
            returned = commit(result, *args, **kwargs)
            turns = [stored.turn for stored in result.turns]
            commits.write([(t.session_id, t.occurred_at.timestamp()) for t in turns], clock.seconds)
            return returned

        store.commit = watched
        return store  # type: ignore[no-any-return]

    bootstrap.scorer, bootstrap.prepared_store = watched_scorer, prepared_store


def main() -> None:
    """Run a worker until a signal arrives."""
    *options, folder = sys.argv[1:]
    install(Path(folder), stand_in=STAND_IN in options)
    sys.argv = ["rapport", "worker"]
    cli.main()


if __name__ == "__main__":
    main()
