"""Delivers alerts to notification targets, at least once.

Start at ``notifier_group.NotifierGroup`` (the process) and ``notifier.Notifier`` (one target).
"""

__all__ = [
    "apprise_channel",
    "connection_guard",
    "notification",
    "notifier",
    "notifier_group",
    "targets",
    "webhook",
]
