"""AsyncConsumer: the public calls, and what stands between them and the flows."""

from __future__ import annotations

from kclient.consumer.async_consumer import AsyncConsumer

__all__ = ["AsyncConsumer"]
