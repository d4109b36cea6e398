"""kclient: a Kafka consumer for Python.

    from kclient import Consumer

    with Consumer("flights", bootstrap_servers="localhost:9092", group_id="delays") as consumer:
        for record in consumer:
            print(record.offset, record.value)

`AsyncConsumer` has the same calls for asyncio. The names are loaded when they are first used, `__version__` among them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
    from kclient.config import Config, load
    from kclient.config.settings import ConsumerSettings
    from kclient.consumer import AsyncConsumer
    from kclient.consumer.callbacks import RebalanceListener
    from kclient.consumer.explain import Explanation
    from kclient.consumer.interceptors import ConsumerInterceptor
    from kclient.errors import KclientError
    from kclient.records.decoder import DecoderChoice, decoder
    from kclient.records.records import Record, Records
    from kclient.records.undecodable import Undecoded
    from kclient.security import OAuthToken, Secret, env, file
    from kclient.security.cloud_tokens import azure_tokens, gcp_tokens, msk_iam_tokens
    from kclient.sync import Consumer
    from kclient.types import (
        Broker,
        DeadLetter,
        Deserializer,
        GroupMetadata,
        Headers,
        IsolationLevel,
        OffsetAndMetadata,
        OffsetAndTimestamp,
        PartitionInfo,
        SubscriptionPattern,
        TimestampType,
        TopicPartition,
    )

_WHERE = {
    "AsyncConsumer": "kclient.consumer",
    "Broker": "kclient.types",
    "Config": "kclient.config",
    "DeadLetter": "kclient.types",
    "DecoderChoice": "kclient.records.decoder",
    "Consumer": "kclient.sync",
    "ConsumerInterceptor": "kclient.consumer.interceptors",
    "ConsumerSettings": "kclient.config.settings",
    "Deserializer": "kclient.types",
    "Headers": "kclient.types",
    "Explanation": "kclient.consumer.explain",
    "GroupMetadata": "kclient.types",
    "IsolationLevel": "kclient.types",
    "KclientError": "kclient.errors",
    "OAuthToken": "kclient.security",
    "OffsetAndMetadata": "kclient.types",
    "OffsetAndTimestamp": "kclient.types",
    "PartitionInfo": "kclient.types",
    "RebalanceListener": "kclient.consumer.callbacks",
    "Record": "kclient.records.records",
    "Records": "kclient.records.records",
    "Secret": "kclient.security",
    "SubscriptionPattern": "kclient.types",
    "TimestampType": "kclient.types",
    "TopicPartition": "kclient.types",
    "Undecoded": "kclient.records.undecodable",
    "azure_tokens": "kclient.security.cloud_tokens",
    "decoder": "kclient.records.decoder",
    "env": "kclient.security",
    "file": "kclient.security",
    "gcp_tokens": "kclient.security.cloud_tokens",
    "load": "kclient.config",
    "msk_iam_tokens": "kclient.security.cloud_tokens",
}

__all__ = [
    "AsyncConsumer",
    "Broker",
    "Config",
    "Consumer",
    "ConsumerInterceptor",
    "ConsumerSettings",
    "DeadLetter",
    "DecoderChoice",
    "Deserializer",
    "Explanation",
    "GroupMetadata",
    "Headers",
    "IsolationLevel",
    "KclientError",
    "OAuthToken",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionInfo",
    "RebalanceListener",
    "Record",
    "Records",
    "Secret",
    "SubscriptionPattern",
    "TimestampType",
    "TopicPartition",
    "Undecoded",
    "azure_tokens",
    "decoder",
    "env",
    "file",
    "gcp_tokens",
    "load",
    "msk_iam_tokens",
]


def __getattr__(name: str) -> object:
    """Load a public name, or look up the version of the installed package."""
    if name == "__version__":
        return _version()
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_WHERE[name]), name)
    return value


def _version() -> str:
    from importlib import metadata  # here, as it takes longer to import than the rest of this module

    try:
        return metadata.version("kclient-kafka")
    except metadata.PackageNotFoundError:
        raise AttributeError(f"{__file__} was imported without package metadata: no __version__") from None


def __dir__() -> list[str]:
    return sorted(__all__)
