"""Alerts and what is done about them: actions, deliveries, rules, interventions."""

__all__ = [
    "alert_actions",
    "alert_counsellors",
    "alerts",
    "deliveries",
    "drift_changes",
    "escalations",
    "interventions",
    "open_alerts",
    "precision",
    "rule_sources",
    "rule_versions",
    "suppressions",
    "visible_alerts",
]
