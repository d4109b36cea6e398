"""Brokers, topics and partitions as values, and the check that a claimed broker or topic can be one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from kclient.generated.metadata_response import MetadataResponseBroker
from kclient.log import get_logger
from kclient.protocol.errors import NONE
from kclient.text import format_count, format_names, printable
from kclient.types import Broker

logger = get_logger("kclient.metadata")

MOST_BROKERS: Final = 10_000
SHOWN_HOST: Final = 100
HOST: Final = re.compile(r"[\w.:%-]{1,255}")  # names with letters of any script, addresses, zones of IPv6
TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@attrs.frozen
class PartitionMetadata:
    """One partition: its leader and replicas, as broker ids; None where unknown."""

    leader: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


@attrs.frozen
class TopicMetadata:
    """One topic. With an `error_code` other than 0 it has no partitions."""

    name: str
    topic_id: bytes | None = None
    internal: bool = False
    error_code: int = NONE
    partitions: Mapping[int, PartitionMetadata] = attrs.field(factory=dict)


def usable_brokers(claimed: Sequence[MetadataResponseBroker]) -> dict[int, Broker]:
    """The brokers of an answer by id, without those that cannot be; none if there are too many."""
    if len(claimed) > MOST_BROKERS:
        logger.warning(
            "metadata names %d brokers, more than %d: the answer is not used", len(claimed), MOST_BROKERS
        )
        return {}
    brokers: dict[int, Broker] = {}
    impossible: list[str] = []
    for one in claimed:
        broker = Broker(one.node_id, one.host, one.port, one.rack)
        if broker.node_id in brokers or not is_usable(broker):
            impossible.append(f"id {one.node_id} at {printable(one.host, SHOWN_HOST)}, port {one.port}")
        else:
            brokers[broker.node_id] = broker
    if impossible:
        many = format_count(len(impossible), "impossible broker")
        logger.warning("metadata names %s: %s", many, format_names(impossible))
    return brokers


def is_usable(broker: Broker) -> bool:
    """Whether id, host and port are possible at all."""
    return broker.node_id >= 0 and HOST.fullmatch(broker.host) is not None and 0 < broker.port <= 65_535


def is_legal_topic(name: str) -> bool:
    """Letters, digits, dots, underscores and hyphens, at most 249, and neither "." nor ".."."""
    return TOPIC.fullmatch(name) is not None and name not in (".", "..")
