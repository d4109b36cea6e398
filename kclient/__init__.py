"""kclient: a Kafka consumer for Python."""
