"""Rapport's service: live scoring of dialogue turns from Kafka into SQL."""

__version__ = "0.1.0"
