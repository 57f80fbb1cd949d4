"""Rapport's service: scores dialogue turns from Kafka live and stores them in SQL.

A package's ``__all__`` lists the modules that other packages may import; the others are private.
"""

__all__ = [
    "__version__",
    "adaptation",
    "analytics",
    "bootstrap",
    "cli",
    "client",
    "contracts",
    "core",
    "demo",
    "errors",
    "health_server",
    "importers",
    "inference",
    "logs",
    "notifications",
    "plain_text",
    "processes",
    "recordings",
    "redaction",
    "sealing",
    "setting_names",
    "settings",
    "store",
    "web",
    "worker",
]

__version__ = "0.1.0"
