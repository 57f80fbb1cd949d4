"""Workers with another bundle take over one by one; both bundles' rows coexist."""

import json
import shutil
from pathlib import Path
from typing import Any

from stream_app.store import tables
from tests.conftest import NewService
from tests.e2e.service import Service, differences, scored_offline, stored
from tests.store.batches import end, turn

OTHER = "0.0.1"


def other_bundle(bundle: Path, folder: Path) -> Path:
    """A bundle with the same graphs and another version."""
    copy = folder / "bundle"
    shutil.copytree(bundle, copy)
    manifest = json.loads((copy / "bundle.json").read_text("utf-8"))
    (copy / "bundle.json").write_text(json.dumps({**manifest, "version": OTHER}), "utf-8")
    return copy


def session(name: str, first: int = 0, last: int = 8) -> list[bytes]:
    return [turn(seq, session_id=name) for seq in range(first, last)]


def of(sessions: set[str], found: dict[Any, Any]) -> dict[Any, Any]:
    """The rows of these sessions."""
    return {
        key: row
        for key, row in found.items()
        if (row["session_id"] if key[0] == "alert" else key[1]) in sessions
    }


def closed(service: Service, bundle: str) -> set[str]:
    return {
        row["session_id"]
        for row in service.rows(tables.session_scores)
        if row["status"] == "closed" and bundle in row["bundle"]
    }


def test_a_new_bundle_takes_over_and_keeps_the_old_rows(
    new_service: NewService, tmp_path: Path
) -> None:
    service = new_service(batch_max=8)
    old = service.settings
    before = [*session("before"), end(session_id="before"), *session("across", 0, 4)]
    first = service.start_worker()
    service.send(before)
    service.wait_for(lambda: service.count(tables.turns) == 12, "the old bundle has scored")
    untouched = stored(service)
    new = old.model_copy(update={"bundle": other_bundle(old.bundle, tmp_path)})
    service.settings = new
    service.start_worker()
    first.terminate()
    first.wait()
    after = [*session("across", 4, 8), end(session_id="across"), *session("after")]
    service.send([*after, end(session_id="after")])
    service.wait_for(
        lambda: closed(service, OTHER) == {"across", "after"}, "the new bundle has scored"
    )
    rows = stored(service)
    assert {row["bundle"] for row in service.rows(tables.bundles)} == {
        key[-1] for key in rows if key[0] == "session_score"
    }
    assert all(rows[key] == row for key, row in untouched.items() if "before" in key)
    assert differences(of({"before"}, scored_offline(old, before, 64)), of({"before"}, rows)) == []
    scored = scored_offline(new, [*session("after"), end(session_id="after")], 64)
    assert differences(scored, of({"after"}, rows)) == []
    across = {key[-1].rpartition("-")[0] for key in of({"across"}, rows) if key[0] == "turn_score"}
    assert len(across) == 2
    assert service.count(tables.turns) == 24
