"""Alerts to people: what is due, as whom, signed, until it is acknowledged."""
