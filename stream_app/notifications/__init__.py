"""Delivers alerts to notification targets, at least once.

Start at ``notifier_group.NotifierGroup`` (the process) and ``notifier.Notifier`` (one target).
"""

__all__ = [
    "apprise_channel",
    "connection_guard",
    "delays",
    "escalation",
    "escalation_planner",
    "escalation_sender",
    "notification",
    "notifier",
    "notifier_group",
    "rota",
    "rounds",
    "targets",
    "webhook",
]
