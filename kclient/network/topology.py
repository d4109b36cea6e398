"""Brokers, topics and partitions as values, and the check that a claimed broker can be one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from kclient.generated.metadata_response import MetadataResponseBroker
from kclient.log import get_logger
from kclient.protocol.errors import NONE

logger = get_logger("kclient.metadata")

LONGEST_HOST: Final = 255


@attrs.frozen
class Broker:
    """A broker and the address it is advertised with."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


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


def usable_brokers(claimed: Iterable[MetadataResponseBroker]) -> dict[int, Broker]:
    """The brokers of an answer by id, without those that cannot be. Spec: H-09."""
    brokers: dict[int, Broker] = {}
    for one in claimed:
        broker = Broker(one.node_id, one.host, one.port, one.rack)
        if broker.node_id in brokers or not is_usable(broker):
            logger.warning("metadata names an impossible broker: id %d, port %d", one.node_id, one.port)
            continue
        brokers[broker.node_id] = broker
    return brokers


def is_usable(broker: Broker) -> bool:
    """Whether id, host and port are possible at all."""
    return broker.node_id >= 0 and 0 < len(broker.host) <= LONGEST_HOST and 0 < broker.port <= 65_535
