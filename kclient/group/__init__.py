"""Consumer groups: coordinator lookup, membership, partition assignment and committed offsets.

Public names, imported on first use:

    lag, lag_async               the distance of a group from the ends of its partitions
    offsets_topic_partition      the partition of `__consumer_offsets` that holds a group
    read_offsets_record          decode a record of that topic; see also read_members and committed_offsets
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kclient.group.offsets_topic import (
        OffsetsRecord,
        UnknownOffsetsRecord,
        committed_offsets,
        offsets_topic_partition,
        read_members,
        read_offsets_record,
    )
    from kclient.lag.calls import lag, lag_async

_WHERE = {
    "OffsetsRecord": "kclient.group.offsets_topic",
    "UnknownOffsetsRecord": "kclient.group.offsets_topic",
    "committed_offsets": "kclient.group.offsets_topic",
    "lag": "kclient.lag.calls",  # a higher layer: it needs positions too
    "lag_async": "kclient.lag.calls",
    "offsets_topic_partition": "kclient.group.offsets_topic",
    "read_members": "kclient.group.offsets_topic",
    "read_offsets_record": "kclient.group.offsets_topic",
}

__all__ = [
    "OffsetsRecord",
    "UnknownOffsetsRecord",
    "committed_offsets",
    "lag",
    "lag_async",
    "offsets_topic_partition",
    "read_members",
    "read_offsets_record",
]


def __getattr__(name: str) -> object:
    """Load a public name."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_WHERE[name]), name)
    return value
