"""Distributed traces of turns, from the producer's headers to the published scores.

Start at ``port.Tracing``, which traces nothing; ``otlp`` is its adapter for OpenTelemetry.
"""

__all__ = ["otlp", "port"]
