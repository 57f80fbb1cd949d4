"""Notes and reasons that people write about alerts are redacted and stay inside the service."""

from datetime import UTC, datetime, timedelta

from stream_app.store import tables
from stream_app.store.repository import Store
from stream_app.store.suppressions import find_suppressions
from tests.store.reading import rows
from tests.web.people.conftest import As

NOTE = "write to client@example.org"


def test_notes_and_reasons_are_redacted_as_turns_are(filled: Store, as_: As) -> None:
    pat = as_("pat")
    alert = pat.get("/api/v1/alerts").json()["items"][0]
    path = f"/api/v1/alerts/{alert['episode_id']}"
    assert pat.post(f"{path}/note", json={"note": NOTE}).status_code == 200
    mute = {"session_id": alert["session_id"], "minutes": 5, "reason": NOTE}
    assert pat.post("/api/v1/mutes", json=mute).status_code == 201
    pat.post(
        f"/alerts/{alert['episode_id']}/acknowledge", data={"reason": "justified", "note": NOTE}
    )
    notes = [row["note"] for row in rows(filled, tables.alert_actions)]
    reasons = [row["reason"] for row in rows(filled, tables.mutes)]
    assert len(notes) == 2
    for words in (*notes, *reasons):
        assert words == "write to ••••••••••••••••••"


def test_the_reason_of_a_mute_is_not_in_deliveries(filled: Store, as_: As) -> None:
    pat = as_("pat")
    alert = pat.get("/api/v1/alerts").json()["items"][0]
    mute = {"session_id": alert["session_id"], "minutes": 5, "reason": "she told me in private"}
    assert pat.post("/api/v1/mutes", json=mute).status_code == 201

    class Subject:
        episode_id, rule = alert["episode_id"], alert["rule"]
        session_id, team = alert["session_id"], alert["team"]

    with filled.reading() as connection:
        later = datetime.now(UTC) + timedelta(seconds=1)
        found = find_suppressions(connection, [Subject()], later)
    assert found[alert["episode_id"]].reason == "muted"
