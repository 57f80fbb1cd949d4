"""Real servers for tests and benchmarks on loopback, without Docker.

Apache Kafka, PostgreSQL and Prometheus.

``monitoring`` has the configuration of Prometheus and Grafana; ``alert_rules`` generates the alert
rules in it. ``docker`` has a step of the Dockerfile. ``helm`` has the chart for Kubernetes;
``helm_command`` renders it. ``release`` builds and describes what is published.
"""
