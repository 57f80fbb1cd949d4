"""Routes of alerts: rules, acknowledgement, mutes, interventions."""

__all__ = ["alerts", "interventions", "mutes", "rules"]
