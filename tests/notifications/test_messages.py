"""The webhook's body and the text for people."""

from datetime import timedelta

from msgspec import structs

from stream_app.contracts.scores import AlertState
from stream_app.notifications.alertmanager import MAX_ALERTS, NO_END, body
from stream_app.notifications.message_text import NOTICE, text, title
from stream_app.notifications.notification import (
    digest,
    digest_id,
    link,
    single,
    trial_notification,
)
from stream_app.store.alerts.deliveries import DueAlert
from tests.notifications.alerts import BEGAN, FIRING, RESOLVED

CONSOLE = "https://console.example.org/"
FIELDS = {
    "version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels",
    "commonLabels", "commonAnnotations", "externalURL", "alerts",
}  # fmt: skip


def many(count: int) -> list[DueAlert]:
    return [
        structs.replace(
            FIRING,
            alert_id=f"id-{number}",
            episode_id=f"e-{number}",
            session_id=f"s{number}",
            severity=("info", "critical", "warning")[number % 3],
            rule=("sudden-drop", "low-empathy-risk")[number % 2],
            began_at=BEGAN + timedelta(minutes=number),
        )
        for number in range(count)
    ]


def test_the_body_is_that_of_alertmanager() -> None:
    message = body(single(FIRING), "desk", CONSOLE)
    assert set(message) == FIELDS
    assert (message["version"], message["receiver"], message["truncatedAlerts"]) == ("4", "desk", 0)
    [alert] = message["alerts"]
    assert (alert["status"], alert["startsAt"], alert["endsAt"]) == (
        "firing",
        "2026-01-05T10:00:00Z",
        NO_END,
    )
    assert alert["labels"] == {
        "alertname": "low-empathy-risk",
        "severity": "warning",
        "session": "s",
        "bundle": "b-1",
        "episode": "1",
        "team": "nights",
        "domain": "counselling",
        "site": "north",
    }
    assert alert["annotations"] == {
        "summary": "low-empathy-risk (warning) is firing in session s: "
        "low-empathy risk 0.81, threshold 0.70",
        "reason": "low-empathy risk 0.81, threshold 0.70",
        "value": "0.8100",
        "threshold": "0.7000",
        "turns": "5, 7",
    }
    assert alert["generatorURL"] == "https://console.example.org/sessions/s"


def test_labels_of_a_rule_cannot_override_those_of_the_alert() -> None:
    posing = structs.replace(FIRING, labels={"severity": "critical", "session": "another"})
    labels = body(single(posing), "desk", "")["alerts"][0]["labels"]
    assert (labels["severity"], labels["session"]) == ("warning", "s")


def test_a_resolved_alert_keeps_its_group_and_has_an_end_time() -> None:
    message = body(single(RESOLVED), "desk", "")
    assert message["status"] == "resolved"
    assert message["groupKey"] == body(single(FIRING), "desk", "")["groupKey"]
    [alert] = message["alerts"]
    assert (alert["startsAt"], alert["endsAt"]) == ("2026-01-05T10:00:00Z", "2026-01-05T10:20:00Z")
    assert alert["fingerprint"] == "id-2"


def test_a_digest_names_the_worst_first_and_says_how_many_were_left_out() -> None:
    alerts = many(MAX_ALERTS + 20)
    message = body(digest("d", alerts), "desk", CONSOLE)
    assert message["truncatedAlerts"] == 20
    assert len(message["alerts"]) == MAX_ALERTS
    severities = [alert["labels"]["severity"] for alert in message["alerts"]]
    assert severities == ["critical"] * 40 + ["warning"] * 40 + ["info"] * 20
    assert message["commonLabels"] == {
        "bundle": "b-1", "domain": "counselling", "episode": "1", "site": "north", "team": "nights"
    }  # fmt: skip
    assert message["commonAnnotations"]["summary"] == (
        "120 more alerts since 2026-01-05 10:00 UTC: 40 critical, 40 warning, 40 info; "
        "by rule: low-empathy-risk 60, sudden-drop 60"
    )
    assert message["status"] == "firing"


def test_a_digest_of_resolved_alerts_is_resolved() -> None:
    message = body(digest("d", [FIRING, RESOLVED]), "desk", "")
    assert message["status"] == "resolved"
    assert [alert["status"] for alert in message["alerts"]] == ["resolved"]
    assert "1 more alert since" in message["commonAnnotations"]["summary"]
    assert "1 of them resolved" in message["commonAnnotations"]["summary"]


def test_the_same_alerts_make_the_same_digest_of_each_target() -> None:
    assert digest_id("desk", [FIRING, RESOLVED]) == digest_id("desk", [RESOLVED, FIRING])
    assert digest_id("desk", [FIRING]) != digest_id("other", [FIRING])


def test_text_names_rule_session_reason_and_link() -> None:
    assert title(single(FIRING)) == "Rapport: low-empathy-risk (warning) firing, session s"
    assert text(single(FIRING), CONSOLE).splitlines() == [
        "Rule: low-empathy-risk",
        "State: firing",
        "Severity: warning",
        "Session: s",
        "Team: nights",
        "Value: 0.81 (threshold 0.70)",
        "Why: low-empathy risk 0.81, threshold 0.70",
        "Firing since: 2026-01-05 10:00 UTC",
        "Look at it: https://console.example.org/sessions/s",
        "",
        NOTICE,
    ]
    assert "Resolved at: 2026-01-05 10:20 UTC" in text(single(RESOLVED), "")
    assert "Look at it" not in text(single(RESOLVED), "")


def test_a_rule_without_a_number_omits_value_and_turns() -> None:
    silent = structs.replace(FIRING, value=None, threshold=None, turns=[])
    assert "Value" not in text(single(silent), "")
    assert "5, 7" not in text(single(FIRING), "")
    assert set(body(single(silent), "desk", "")["alerts"][0]["annotations"]) == {
        "summary",
        "reason",
    }


def test_a_long_digest_lists_twenty_alerts_and_counts_all() -> None:
    lines = text(digest("d", many(52)), CONSOLE).splitlines()
    assert lines[0].startswith("52 more alerts since")
    assert sum(line.startswith("- ") for line in lines) == 21
    assert "- and 32 more, all of them in the console https://console.example.org/" in lines
    assert "https://console.example.org/sessions/s1" in lines[2]
    assert lines[-1] == NOTICE


def test_a_session_id_cannot_break_a_line_or_a_link() -> None:
    hostile = structs.replace(FIRING, session_id="a/../b\r\nBcc: x@example.org?#")
    assert "\n" not in title(single(hostile))
    assert "\nBcc" not in text(single(hostile), CONSOLE)
    assert link(CONSOLE, hostile.session_id) == (
        "https://console.example.org/sessions/a%2F..%2Fb%0D%0ABcc%3A%20x%40example.org%3F%23"
    )
    assert len(title(single(structs.replace(FIRING, session_id="x" * 200)))) == 150


def test_a_test_message_is_marked_as_a_test() -> None:
    message = trial_notification("desk", BEGAN)
    assert title(message) == "Rapport: test message"
    assert "nothing has happened" in text(message, CONSOLE)
    posted = body(message, "desk", CONSOLE)
    assert posted["commonLabels"]["test"] == "true"
    assert posted["commonLabels"]["severity"] == "info"
    assert message.alerts[0].state is AlertState.FIRING


def test_the_protocol_is_in_messages_about_firing_alerts_only() -> None:
    firing = structs.replace(FIRING, protocol="Call the manager.\nTake\x1bover.\n")
    words = text(single(firing), "")
    assert f"\n\nProtocol:\nCall the manager.\nTake over.\n\n{NOTICE}" in words
    annotations = body(single(firing), "desk", "")["alerts"][0]["annotations"]
    assert annotations["protocol"] == firing.protocol
    resolved = structs.replace(RESOLVED, protocol="Call the manager.")
    assert "manager" not in text(single(resolved), "")
    assert "protocol" not in body(single(resolved), "desk", "")["alerts"][0]["annotations"]
    assert "manager" not in text(digest("d", [firing]), "")
