"""Names in filters: read once in half a minute, and never for another scope."""

from pathlib import Path

import pytest

from stream_app.store.sessions.scope import Scope
from stream_app.store.stream.repository import Store
from stream_app.web.console.overviews import recent_choices
from stream_app.web.console.overviews.recent_choices import KEEP_SECONDS, MAX_KEPT, choices
from tests.store.databases import open_store, sqlite


def test_names_are_kept_by_scope_for_half_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, reads, now = open_store(sqlite(tmp_path / "a.db")), [], 1000.0

    def read(_: Store, scope: Scope) -> list[str]:
        reads.append(scope)
        return [f"{scope.team} {len(reads)}"]

    monkeypatch.setattr(recent_choices, "monotonic", lambda: now)
    north, south = Scope(team="north"), Scope(team="south")
    assert choices(store, north, "rules", read) == ["north 1"]
    assert choices(store, north, "rules", read) == ["north 1"]
    assert choices(store, south, "rules", read) == ["south 2"]
    assert choices(store, north, "teams", read) == ["north 3"]
    now += KEEP_SECONDS + 1
    assert choices(store, north, "rules", read) == ["north 4"]
    for number in range(MAX_KEPT):
        choices(store, Scope(team=str(number)), "rules", read)
    assert choices(store, north, "rules", read)[0].startswith("north")
    store.close()
