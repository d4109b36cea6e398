"""The error of this package: a Kafka that could not be fetched, started or queried."""

from __future__ import annotations


class LocalKafkaError(Exception):
    """Names the failed action and shows the end of the failed program's log."""
