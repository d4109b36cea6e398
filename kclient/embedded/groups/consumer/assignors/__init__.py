"""Who should own what: pure functions from topics and members to a target for each member.

    assign({topic_id: 6}, [Wanting("a", topics=(topic_id,))]) → {"a": (TopicIdPartition(topic_id, 0), …)}

Every partition of a topic that somebody wants goes to exactly one of those who want it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kclient.embedded.groups.consumer.assignors.base import Targets, Wanting
from kclient.embedded.groups.consumer.assignors.range import assign_ranges
from kclient.embedded.groups.consumer.assignors.uniform import assign_uniformly

Assign = Callable[[Mapping[bytes, int], Sequence[Wanting]], Targets]

ASSIGNORS: Final[Mapping[str, Assign]] = {"uniform": assign_uniformly, "range": assign_ranges}

__all__ = ["ASSIGNORS", "Assign", "Targets", "Wanting"]
