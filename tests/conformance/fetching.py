"""Fetch in whatever version: topics by name or by id, with or without a session."""

from __future__ import annotations

from typing import Any

from kclient.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kclient.records.batch import read_batches
from tests.conformance.target import Target

BY_ID = 13
SESSIONS = 7


def named(target: Target, topic: str, version: int) -> dict[str, Any]:
    """The fields that name a topic."""
    return {"topic_id": target.topic_id(topic)} if version >= BY_ID else {"topic": topic}


def fetch_request(
    target: Target,
    version: int,
    offsets: dict[str, int],
    *,
    partition: dict[str, Any] | None = None,
    forgotten: list[str] | None = None,
    **fields: Any,
) -> FetchRequest:
    """Partition 0 of each topic from an offset; `partition` are more fields of the partitions."""
    rows = [
        FetchTopic(
            partitions=[
                FetchPartition(
                    **{
                        "partition": 0,
                        "fetch_offset": offset,
                        "partition_max_bytes": 1 << 20,
                        **(partition or {}),
                    }
                )
            ],
            **named(target, topic, version),
        )
        for topic, offset in offsets.items()
    ]
    gone = [ForgottenTopic(partitions=[0], **named(target, topic, version)) for topic in forgotten or []]
    wanted = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "topics": rows, **fields}
    if version >= SESSIONS:
        wanted = {"session_id": 0, "session_epoch": -1, "forgotten_topics_data": gone, **wanted}
    return FetchRequest(**wanted)


def fetch(target: Target, version: int, offsets: dict[str, int], **details: Any) -> Any:
    """Send it and wait: the whole response."""
    return target.ask(fetch_request(target, version, offsets, **details), version)


def fetch_one(target: Target, version: int, topic: str, offset: int, **details: Any) -> Any:
    """What the response says of partition 0 of the only topic asked for."""
    response = fetch(target, version, {topic: offset}, **details)
    assert response.error_code == 0, response
    [row] = response.responses
    [partition] = row.partitions
    return partition


def base_offsets(partition: Any) -> list[int]:
    """The first offset of each batch in the response; a batch that is cut off is not counted."""
    return [batch.base_offset for batch in read_batches(bytes(partition.records or b""))]
