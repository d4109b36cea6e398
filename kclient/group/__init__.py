"""The group: finding its coordinator, being a member of it, sharing out partitions, storing offsets.

Public here, and loaded when first used:

    lag, lag_async               how far a group is behind the ends of its partitions
    offsets_topic_partition      where a group is kept in `__consumer_offsets`
    read_offsets_record          what a record of that topic says; read_members, committed_offsets: from several
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
    "lag": "kclient.lag.calls",  # above this room: it needs positions too
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
