"""Rules in a real worker: a waiting client fires an alert, and a changed file is adopted."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from stream_app.store.database import tables
from tests.conftest import NewService
from tests.rule_texts import EAGER_TEXT, HEAD, rule_text

WAITS = rule_text(
    "waits", summary="Nobody has answered for {waiting_seconds} s.", when="waiting", for_="4s"
)


def client_turn(session: str, seq: int, at: datetime) -> bytes:
    role = ("client", "counsellor")[seq % 2]
    return json.dumps(
        {
            "type": "turn",
            "session_id": session,
            "seq": seq,
            "speaker_id": role,
            "role": role,
            "text": f"This is what I say at {seq}.",
            "occurred_at": at.isoformat(),
            "consent": True,
        }
    ).encode()


def test_silence_fires_in_a_live_session_and_not_in_an_old_recording(
    new_service: NewService, tmp_path: Path
) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(HEAD + WAITS, "utf-8")
    service = new_service(rules=file)
    service.start_worker()
    now = datetime.now(UTC)
    service.send([client_turn("old", 0, now - timedelta(days=40)), client_turn("live", 0, now)])

    def states(session: str) -> list[str]:
        found = [row for row in service.rows(tables.alerts) if row["session_id"] == session]
        return sorted(row["state"] for row in found)

    service.wait_for(lambda: states("live") == ["firing", "pending"], "the silence alert fires")
    [fired] = [row for row in service.rows(tables.alerts) if row["state"] == "firing"]
    assert fired["occurred_at"] == now + timedelta(seconds=4)
    assert (fired["seq"], fired["reason"]) == (0, "Nobody has answered for 4 s.")
    assert states("old") == ["pending"]

    file.write_text(HEAD + WAITS + EAGER_TEXT, "utf-8")
    log = tmp_path / "worker.log"
    service.wait_for(lambda: "rules.adopted" in log.read_text("utf-8"), "the rules are adopted")
    service.send([client_turn("live", 1, now + timedelta(seconds=9))])
    service.wait_for(lambda: "resolved" in states("live"), "the alert is resolved")
    later = [client_turn("live", seq, now + timedelta(seconds=8 + seq)) for seq in range(2, 12)]
    service.send(later)

    def rules() -> set[str]:
        return {row["rule"] for row in service.rows(tables.alerts)}

    service.wait_for(lambda: rules() == {"waits", "low-empathy-risk"}, "the new rule fires")
    service.wait_for(lambda: service.count(tables.turns) == 13, "all turns are stored")
    published = {
        json.loads(record.value)["alert_id"]
        for record in service.messages(service.settings.alert_topic)
    }
    assert published == {row["alert_id"] for row in service.rows(tables.alerts)}
