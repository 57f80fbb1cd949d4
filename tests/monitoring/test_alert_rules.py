"""The runbook's alerts: the rules file is generated from them, and each fires when it should."""

import io
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from servers import alert_rules
from servers.alert_rules import RunbookError
from servers.prometheus import CONFIGURATION, promtool
from tests.monitoring.conftest import exported_names

RULES: Final = CONFIGURATION.with_name("rules.yml")
TABLE: Final = "\n## Runbook\n\n| symptom | cause | action | alert |\n| --- | --- | --- | --- |\n"
FIRES: Final[dict[str, dict[str, str]]] = {
    "RapportProcessDown": {'up{job="rapport-web", instance="w:1"}': "1 0x60"},
    "RapportLagRises": {'rapport_lag_events{partition="0"}': "0+200x60"},
    "RapportWorkerOnCpu": {
        'rapport_provider{instance="a", in_use="cpu", asked="auto"}': "1x60",
        'rapport_provider{instance="b", in_use="cuda", asked="auto"}': "1x60",
    },
    "RapportStoreUnreachable": {'rapport_store_retries_total{instance="a"}': "0+3x60"},
    "RapportWorkersRestart": {'rapport_ticks_created{instance="a"}': "0+60x60"},
    "RapportImplausibleTimes": {
        'rapport_dead_letters_total{reason="implausible-time"}': "0x20 1x40"
    },
    "RapportUnprocessableEvents": {
        'rapport_dead_letters_total{reason="unprocessable"}': "0x20 1x40"
    },
    "RapportSessionUnheard": {'rapport_events_total{fate="unheard"}': "0x20 1x40"},
    "RapportDeadLetters": {'rapport_events_total{fate="dead-letter"}': "0x20 1x40"},
    "RapportRulesRefused": {'rapport_rule_reloads_total{outcome="refused"}': "0x20 1x40"},
    "RapportRoutesInvalid": {"rapport_routes_invalid": "0x20 1x40"},
    "RapportBundleRefused": {'rapport_bundles{state="refused"}': "0x20 2x40"},
    "RapportMiskeyedEvents": {"rapport_miskeyed_events_total": "0x20 1x40"},
    "RapportStaleStates": {"rapport_stale_states_total": "0+60x60"},
    "RapportRuleFails": {'rapport_rule_failures_total{rule="mine"}': "1x20 2x40"},
    "RapportLogReplaced": {'rapport_crashes_total{reason="LogReplaced"}': "_x20 1"},
    "RapportEventsDeletedUnread": {
        'rapport_deleted_unread_events_total{instance="a"}': "_x20 6x40",
        'rapport_deleted_unread_events_created{instance="a"}': "_x20 1199x40",
    },
    "RapportDeliveriesFail": {
        'rapport_deliveries_total{target="desk", result="refused"}': "0+1x60"
    },
    "RapportDeliveriesHeld": {'rapport_deliveries_total{target="desk", result="held"}': "0x9 5x50"},
    "RapportNobodyOnCall": {
        'rapport_deliveries_total{target="night", result="nobody_on_call"}': "0x20 1x40"
    },
    "RapportEventsLeftOut": {'rapport_crashes_total{reason="EventsLeftOut"}': "_x20 1"},
    "RapportDatabaseWentBack": {'rapport_crashes_total{reason="DatabaseWentBack"}': "_x20 1"},
    "RapportPurgeRefused": {'rapport_refused_purges_total{reason="PurgeRefused"}': "1x20 2x40"},
    "RapportClockAhead": {'rapport_crashes_total{reason="InvalidTimestampError"}': "_x20 1"},
    "RapportDrift": {"rapport_drift_changes": "0x5 2x55"},
    "RapportConsoleStale": {"rapport_live_reading": "1 0x60"},
}
"""By alert, the series that make it fire within 25 minutes, one sample a minute."""
QUIET: Final = {
    'up{job="rapport-web", instance="w:1"}': "1x60",
    'rapport_lag_events{partition="0"}': "5000-20x60",
    'rapport_provider{instance="a", in_use="cpu", asked="auto"}': "1x60",
    'rapport_store_retries_total{instance="a"}': "7x60",
    'rapport_ticks_created{instance="a"}': "100x10 160x50",
    'rapport_deleted_unread_events_total{instance="a"}': "6x60",
    'rapport_deleted_unread_events_created{instance="a"}': "-3600x60",
    'rapport_dead_letters_total{reason="implausible-time"}': "3x60",
    'rapport_dead_letters_total{reason="unprocessable"}': "3x60",
    'rapport_events_total{fate="dead-letter"}': "3x60",
    'rapport_events_total{fate="accepted"}': "0+90x60",
    'rapport_rule_reloads_total{outcome="refused"}': "0x60",
    'rapport_rule_reloads_total{outcome="adopted"}': "0+1x60",
    "rapport_routes_invalid": "0x60",
    'rapport_bundles{state="refused"}': "0x60",
    'rapport_bundles{state="in_force"}': "9x60",
    "rapport_miskeyed_events_total": "9x60",
    "rapport_stale_states_total": "0+2x60",
    'rapport_rule_failures_total{rule="mine"}': "2x60",
    'rapport_crashes_total{reason="StoreError"}': "1x60",
    'rapport_deliveries_total{target="desk", result="delivered"}': "0+9x60",
    'rapport_deliveries_total{target="desk", result="refused"}': "2x60",
    'rapport_deliveries_total{target="desk", result="held"}': "0x60",
    "rapport_drift_changes": "0x60",
    "rapport_live_reading": "1x60",
}


def shipped() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return group["rules"]


def written(document: str) -> str:
    out = io.StringIO()
    alert_rules.write(alert_rules.alert_rules(document), out)
    return out.getvalue()


def test_the_shipped_file_is_what_the_command_prints() -> None:
    document = alert_rules.RUNBOOK.read_text("utf-8")
    assert written(document) == RULES.read_text("utf-8"), (
        "run python -m servers.alert_rules > servers/monitoring/rules.yml"
    )


def test_every_row_of_the_runbook_about_a_metric_has_an_alert() -> None:
    section = alert_rules.RUNBOOK.read_text("utf-8").partition("\n## Runbook\n")[2]
    for line in section.partition("\n## ")[0].splitlines():
        if line.startswith("| `rapport_"):
            assert re.search(r"\| `Rapport\w+`, ", line), line


def test_a_row_becomes_a_rule_with_plain_words_and_bars() -> None:
    row = '| `x` rises | a \\| b | see `y` | `Mine`, warning after 5m: `x{a=~"b\\|c"} > 1` |\n'
    [rule] = yaml.safe_load(written(TABLE + row + "| z | - | - | |\n"))["groups"][0]["rules"]
    assert (rule["alert"], rule["expr"], rule["for"]) == ("Mine", 'x{a=~"b|c"} > 1', "5m")
    assert rule["labels"] == {"severity": "warning"}
    assert rule["annotations"]["summary"] == "x rises"
    assert rule["annotations"]["cause"] == "a | b"
    assert rule["annotations"]["action"] == "see y"


@pytest.mark.parametrize(
    "document",
    [
        "\n## Runbook\n\n| symptom | cause |\n| --- | --- |\n",
        TABLE + "| a | b | c |\n",
        TABLE + "| a | b | c | `Mine`, urgent after 5m: `x > 1` |\n",
        TABLE + "| a | b | c | `Mine`, warning after a while: `x > 1` |\n",
    ],
)
def test_a_row_that_cannot_be_read_is_an_error(document: str) -> None:
    with pytest.raises(RunbookError):
        list(alert_rules.alert_rules(document))


def test_promtool_accepts_the_rules_and_the_configuration(prometheus_installed: None) -> None:
    assert f"{len(shipped())} rules found" in promtool("check", "rules", RULES)
    promtool("check", "config", CONFIGURATION)


def test_rules_use_only_metrics_that_the_processes_export() -> None:
    for rule in shipped():
        used = set(re.findall(r"\brapport_[a-z_]+", rule["expr"]))
        assert used <= exported_names(), rule["alert"]
        assert used or "up{" in rule["expr"]


def test_each_alert_fires_on_its_cause_and_none_without(
    prometheus_installed: None, tmp_path: Path
) -> None:
    assert FIRES.keys() == {rule["alert"] for rule in shipped()}
    firing = 'count by (alertname) (ALERTS{alertstate="firing"})'

    def case(series: dict[str, str], alert: str | None) -> dict[str, Any]:
        expected = [{"labels": f'{{alertname="{alert}"}}', "value": 1}] if alert else []
        return {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [
                {"expr": firing, "eval_time": f"{minute}m", "exp_samples": samples}
                for minute, samples in ((1, []), (25, expected))
            ],
        }

    tests = [case(series, alert) for alert, series in FIRES.items()] + [case(QUIET, None)]
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "tests": tests}), "utf-8")
    promtool("test", "rules", file)
