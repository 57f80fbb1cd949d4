"""Rapport's service: live scoring of dialogue turns from Kafka into SQL.

A package's ``__all__`` names the modules that other packages may import; the rest is its own.
"""

__all__ = [
    "__version__",
    "bootstrap",
    "cli",
    "commands",
    "contracts",
    "core",
    "errors",
    "health_server",
    "inference",
    "logs",
    "notifications",
    "settings",
    "store",
    "web",
    "worker",
]

__version__ = "0.1.0"
