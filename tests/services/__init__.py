"""Real servers for tests: Apache Kafka and PostgreSQL as processes on loopback, without Docker."""
