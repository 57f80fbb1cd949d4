"""Alerts to people: what is due, as whom, signed, until it is acknowledged.

Start at ``switchboard.Switchboard`` (the process) and ``notifier.Notifier`` (for one target).
"""

__all__ = ["apprise_channel", "notification", "notifier", "switchboard", "targets", "webhook"]
