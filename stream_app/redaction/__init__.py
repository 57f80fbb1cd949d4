"""Masks personal details in text before it is stored: recognisers find spans, masks hide them.

Start at ``rules.Rules``; ``port.Redactor`` is the port, ``presidio`` another adapter.
"""

__all__ = ["mask", "port", "presidio", "rules", "spans"]
