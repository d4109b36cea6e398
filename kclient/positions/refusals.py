"""What brokers refuse and are asked again: a line for each code of an answer, so that thousands of partitions are one.

Most codes pass by themselves with the next metadata and are noted at DEBUG. An unknown partition and a code that
nobody expects here may last: a WARNING, once in ten seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kclient.log import ThrottledLogger, get_logger
from kclient.protocol import errors as codes
from kclient.text import format_partitions
from kclient.types import TopicPartition

logger = get_logger("kclient.positions")

PASSING: Final = frozenset(
    {
        codes.LEADER_NOT_AVAILABLE,
        codes.NOT_LEADER_OR_FOLLOWER,
        codes.REPLICA_NOT_AVAILABLE,
        codes.KAFKA_STORAGE_ERROR,
        codes.FENCED_LEADER_EPOCH,
        codes.UNKNOWN_LEADER_EPOCH,
        codes.OFFSET_NOT_AVAILABLE,
    }
)


def note(throttled: ThrottledLogger, now: float, api: str, refused: Mapping[TopicPartition, int]) -> None:
    """Log the codes of the partitions that an answer of `api` refused. `now` is the loop's time."""
    by_code: dict[int, list[TopicPartition]] = {}
    for tp, code in refused.items():
        by_code.setdefault(code, []).append(tp)
    for code, partitions in by_code.items():
        name, where = codes.error(code).name, format_partitions(partitions)
        if code in PASSING:
            logger.debug("%s: %s (%d) for %s; asking again", api, name, code, where)
        else:
            throttled.warning((api, code), now, "%s: %s (%d) for %s; asking again", api, name, code, where)
