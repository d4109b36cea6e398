"""AsyncConsumer: the public calls, and the parts of one consumer that they use."""

from __future__ import annotations

from kclient.consumer.async_consumer import AsyncConsumer

__all__ = ["AsyncConsumer"]
