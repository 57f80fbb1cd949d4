"""Real servers for tests and benchmarks: Apache Kafka and PostgreSQL on loopback, no Docker."""
