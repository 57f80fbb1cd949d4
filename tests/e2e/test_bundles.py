"""Head bundles in a real worker: added and removed while it runs."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.parts.head_bundles import copied
from stream_app.inference.bundles import bundle as bundles
from stream_app.store.database import tables
from tests.conftest import NewService

NOW = datetime.now(UTC)


def said(session: str, seq: int, **facts: Any) -> bytes:
    role = ("client", "counsellor")[seq % 2]
    return json.dumps(
        {
            "type": "turn",
            "session_id": session,
            "seq": seq,
            "speaker_id": role,
            "role": role,
            "text": f"This is what I say at {seq}.",
            "occurred_at": (NOW + timedelta(seconds=seq)).isoformat(),
            "consent": True,
            **facts,
        }
    ).encode()


def test_a_bundle_is_added_and_removed_while_the_worker_runs(
    new_service: NewService, tmp_path: Path
) -> None:
    file, log = tmp_path / "routes.yaml", tmp_path / "worker.log"
    file.write_text("version: 1\n", "utf-8")
    service = new_service(bundle_routes=file)
    base = bundles.load(service.settings.bundle)
    service.start_worker()

    def scored_by(session: str, turns: int) -> set[str]:
        def found() -> list[dict[str, Any]]:
            rows = service.rows(tables.turn_scores)
            return [row for row in rows if row["session_id"] == session]

        service.wait_for(lambda: len({row["seq"] for row in found()}) == turns, "turns are scored")
        return {row["bundle"] for row in found()}

    def adopted(count: int) -> bool:
        return log.read_text("utf-8").count("bundles.adopted") >= count

    service.send([said("before", 0, team="north")])
    own = base.manifest.bundle_id
    assert scored_by("before", 1) == {own}
    copied(base, tmp_path / "north", "north")
    file.write_text(
        "version: 1\nbundles: {north: {folder: north}}\n"
        "routes: [{bundle: north, teams: [north]}]\n",
        "utf-8",
    )
    service.wait_for(lambda: adopted(2), "the bundle is adopted")
    service.send([said("before", 1), said("after", 0, team="north"), said("after", 1)])
    words = "Je n’arrive pas à dormir la nuit, et personne ne me demande pourquoi."
    service.send([said("french", 0, lang="fr-CA", text=words)])
    north = own.replace(base.manifest.name, "north", 1)
    assert scored_by("after", 2) == {north}
    assert scored_by("before", 2) == {own}
    file.write_text("version: 1\n", "utf-8")
    service.wait_for(lambda: adopted(3), "the bundle is removed")
    service.send([said("after", 2), said("after", 3)])
    assert scored_by("after", 4) == {north, own}
    service.wait_for(lambda: service.count(tables.turns) == 7, "all turns are stored")
    [french] = [row for row in service.rows(tables.turns) if row["session_id"] == "french"]
    assert french["unscored"] == "language"
    assert {row["bundle"] for row in service.rows(tables.bundles)} == {own, north}
