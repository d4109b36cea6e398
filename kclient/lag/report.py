"""The lag of a group: for each partition the committed offset, the end and the lag.

    lag = max(0, end − max(committed, log start))

The lag of a commit below the log start counts from the log start. Without a commit, or without an end, the lag is
None, which is not 0.
"""

from __future__ import annotations

from typing import Any

import attrs

from kclient.group.describe import GroupDescription, MemberDescription
from kclient.types import IsolationLevel, OffsetAndMetadata, TopicPartition


@attrs.frozen
class PartitionLag:
    """One partition of a group.

    `committed` is None where nothing is committed. `log_start` and `end` are the first offset and the one after the
    last that can be read: the high watermark, or with read_committed the last stable offset. Both are None where they
    cannot be had, and `error` is Kafka's name of the reason: UNKNOWN_TOPIC_OR_PARTITION for a topic that was
    deleted, LEADER_NOT_AVAILABLE, TOPIC_AUTHORIZATION_FAILED. `member` holds the partition now.
    """

    partition: TopicPartition
    committed: OffsetAndMetadata | None = None
    log_start: int | None = None
    end: int | None = None
    member: MemberDescription | None = None
    error: str | None = None

    @property
    def lag(self) -> int | None:
        """Records between what is committed and the end, None without a commit or an end."""
        if self.committed is None or self.end is None or self.log_start is None:
            return None
        return max(0, self.end - max(self.committed.offset, self.log_start))

    def to_json(self) -> dict[str, Any]:
        """Return one entry of `GroupLag.to_json`."""
        committed = self.committed
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "committed": None if committed is None else committed.offset,
            "leader_epoch": None if committed is None else committed.leader_epoch,
            "metadata": None if committed is None else committed.metadata,
            "log_start": self.log_start,
            "end": self.end,
            "lag": self.lag,
            "member_id": None if self.member is None else self.member.member_id,
            "error": self.error,
        }


@attrs.frozen(repr=False)
class GroupLag:
    """A group and its partitions, by topic and number. `repr()` is one line; `to_json()` has everything."""

    group: GroupDescription
    isolation_level: IsolationLevel
    partitions: tuple[PartitionLag, ...]

    @property
    def total(self) -> int | None:
        """The sum of the lags that are known, None where none is: a group that has committed nothing has no lag."""
        known = [one.lag for one in self.partitions if one.lag is not None]
        return sum(known) if known else None

    @property
    def unknown(self) -> int:
        """How many partitions have no lag, and are not in `total`."""
        return sum(one.lag is None for one in self.partitions)

    def __repr__(self) -> str:
        group, total = self.group, "unknown" if self.total is None else self.total
        counts = f"partitions={len(self.partitions)}, unknown={self.unknown}, members={len(group.members)}"
        return f"GroupLag({group.group_id!r}, {group.state}, total={total}, {counts})"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON; keys are only ever added to it."""
        group = self.group
        return {
            "group": group.group_id,
            "kind": group.kind,
            "state": group.state,
            "coordinator": group.coordinator,
            "assignor": group.assignor,
            "group_epoch": group.group_epoch,
            "isolation_level": self.isolation_level.name.lower(),
            "total_lag": self.total,
            "partitions_without_lag": self.unknown,
            "partitions": [one.to_json() for one in self.partitions],
            "members": [_member(member) for member in group.members],
        }


def _member(member: MemberDescription) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "member_epoch": member.member_epoch,
        "topics": list(member.topics),
        "pattern": member.pattern,
        "partitions": [
            {"topic": partition.topic, "partition": partition.partition} for partition in member.partitions
        ],
    }
