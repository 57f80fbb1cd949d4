"""What is posted, and what the notifier needs before it posts anything."""

from datetime import UTC, datetime

import pytest
from msgspec import structs
from pydantic import SecretStr, ValidationError

from stream_app import bootstrap
from stream_app.contracts.scores import AlertState
from stream_app.errors import RapportError
from stream_app.notifications.alertmanager import NOT_YET, body
from stream_app.notifications.webhook import Webhook, webhook_target
from stream_app.settings import Settings
from stream_app.store.deliveries import DueAlert

BEGAN, NOW = datetime(2026, 1, 5, 10, tzinfo=UTC), datetime(2026, 1, 5, 10, 20, tzinfo=UTC)
FIRING = DueAlert(
    "id-1", "low-empathy-risk", "s", "b-1", AlertState.FIRING, 1, 0.81, 0.7, BEGAN, BEGAN, 0
)
RESOLVED = structs.replace(
    FIRING, alert_id="id-2", state=AlertState.RESOLVED, value=0.4, threshold=0.5, occurred_at=NOW
)
FIELDS = {
    "version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels",
    "commonLabels", "commonAnnotations", "externalURL", "alerts",
}  # fmt: skip


def test_the_body_is_that_of_alertmanager() -> None:
    message = body(FIRING, "https://console.example.org")
    assert set(message) == FIELDS
    assert message["version"] == "4"
    [alert] = message["alerts"]
    assert (alert["status"], alert["startsAt"], alert["endsAt"]) == (
        "firing",
        "2026-01-05T10:00:00Z",
        NOT_YET,
    )
    assert alert["annotations"]["summary"] == ("low-empathy-risk is firing in session s")
    assert alert["generatorURL"] == message["externalURL"] == "https://console.example.org"


def test_a_resolved_alert_keeps_its_group_and_says_when_it_ended() -> None:
    message = body(RESOLVED, "")
    assert message["status"] == "resolved"
    assert message["groupKey"] == body(FIRING, "")["groupKey"]
    [alert] = message["alerts"]
    assert (alert["startsAt"], alert["endsAt"]) == ("2026-01-05T10:00:00Z", "2026-01-05T10:20:00Z")
    assert alert["fingerprint"] == "id-2"


def test_a_target_is_named_by_its_host_only() -> None:
    one = webhook_target("https://hooks.example.org/services/secret")
    assert one.startswith("webhook hooks.example.org ")
    assert "secret" not in one
    assert one != webhook_target("https://hooks.example.org/services/other")


def test_without_an_address_there_is_nothing_to_run() -> None:
    with pytest.raises(RapportError, match="RAPPORT_WEBHOOK_URL is not set"):
        bootstrap.notifier(Settings())


@pytest.mark.parametrize("secret", ["whsec_", "whsec_x"])
def test_a_broken_secret_is_named(secret: str) -> None:
    with pytest.raises(RapportError, match="RAPPORT_WEBHOOK_SECRET"):
        Webhook("http://localhost", secret, "", 1.0)


@pytest.mark.parametrize("address", ["ftp://hooks.example.org/x-secret", "x-secret"])
def test_an_address_that_cannot_be_posted_to_is_refused_without_quoting_it(address: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(webhook_url=SecretStr(address))
    assert "not an http or https address" in str(refused.value)
    assert all("x-secret" not in error["msg"] for error in refused.value.errors())


def test_no_address_is_none() -> None:
    assert Settings(webhook_url=SecretStr("")).webhook_url is None
