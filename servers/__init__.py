"""Real servers for tests and benchmarks: Kafka, PostgreSQL and Prometheus on loopback, no Docker.

``monitoring`` has the configuration of Prometheus and Grafana; ``alert_rules`` generates the alert
rules in it. ``helm`` has the chart for Kubernetes; ``helm_command`` renders it.
"""
