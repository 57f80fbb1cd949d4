"""The Kafka side: a Faust app around the pure pipeline."""
