"""The one error of this package: a Kafka that could not be fetched, started or asked."""

from __future__ import annotations


class LocalKafkaError(Exception):
    """Says what was tried and shows the end of the log of the program that failed."""
