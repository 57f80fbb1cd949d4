"""``rapport drift``: what is new is printed once, sent to a target, and acknowledged."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from stream_app.analytics.questions import drift_watch
from stream_app.notifications import message_text
from stream_app.notifications.notification import notice
from stream_app.store.accounts import audit
from stream_app.store.alerts import drift_changes
from stream_app.store.alerts.drift_changes import DriftChange, FoundChange
from stream_app.store.stream.repository import Store
from tests.commands.conftest import Rapport
from tests.store import databases

FOUND = FoundChange(
    "population stability index", "length", "all", datetime(2026, 3, 2, tzinfo=UTC), 0.3
)
LINE = "length, all: population stability index 0.30 since 2026-03-02"


@pytest.fixture(autouse=True)
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database in which the same change is found every day."""
    url = databases.sqlite(tmp_path / "one.db")
    monkeypatch.setenv("RAPPORT_DATABASE_URL", url)
    databases.open_store(url).close()

    def check(store: Store, *_: object) -> list[DriftChange]:
        return drift_changes.record(store, [FOUND])

    monkeypatch.setattr(drift_watch, "check", check)


def test_a_change_is_printed_once_and_acknowledged(rapport: Rapport) -> None:
    first, second = (rapport("drift", "check", "--fail") for _ in range(2))
    assert (first.returncode, second.returncode) == (1, 0)
    assert LINE in first.stdout
    assert second.stdout == ""
    listed = rapport("drift", "list").stdout
    assert LINE in listed
    assert LINE in rapport("drift", "acknowledge", listed.split()[0]).stdout
    assert rapport("drift", "list").stdout == ""
    assert "acknowledged by" in rapport("drift", "list", "--all").stdout
    store = databases.open_store(os.environ["RAPPORT_DATABASE_URL"])
    actions = [each.action for each in audit.latest(store)]
    store.close()
    assert actions.count("acknowledge drift") == 1


def test_a_notice_is_about_no_session() -> None:
    message = notice("rapport-drift", LINE, datetime.now(UTC))
    assert message_text.title(message) == "Rapport: rapport-drift"
    assert message_text.text(message, "https://rapport.example") == LINE
