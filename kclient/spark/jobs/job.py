"""Whose checkpoint it is: what must stay the same for a job to go on, and what is refused when it does not.

Spec: SP-58, SP-83.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import attrs

from kclient.errors import ConfigError
from kclient.spark.jobs.values import is_pattern


@attrs.frozen(kw_only=True)
class Job:
    """What must stay the same for a checkpoint to go on. `job` is drawn once and names the job in its manifests."""

    job: str
    cluster_id: str | None
    topics: tuple[str, ...]
    sink: str
    engine: str
    writer: str
    topic_ids: Mapping[str, str] = attrs.field(factory=dict)

    def reads(self, topic: str) -> bool:
        """Whether a topic is one of its own, or would be if it came to be."""
        patterns = filter(is_pattern, self.topics)
        return topic in self.topics or any(re.fullmatch(pattern, topic) for pattern in patterns)

    def differences(self, other: Job, *, begun: bool = True) -> list[str]:
        """What is not the same, one sentence each. Topics that are new or have an id now do not count.

        Before the first batch has begun, another engine or writer may do it: the one that was chosen may not run here.
        """
        found = [
            f"its {what} {was!r}, not {now!r}"
            for what, was, now in (
                ("cluster id is", self.cluster_id, other.cluster_id),
                ("topics are", ",".join(sorted(self.topics)), ",".join(sorted(other.topics))),
                ("sink is", self.sink, other.sink),
                ("engine is", self.engine, other.engine if begun else self.engine),
                ("writer is", self.writer, other.writer if begun else self.writer),
            )
            if was != now
        ]
        anew = [topic for topic, was in self.topic_ids.items() if other.topic_ids.get(topic, was) != was]
        return found + [f"topic {topic} was deleted and made anew since" for topic in anew]


def check_same(path: Path, kept: Job, wanted: Job, *, begun: bool = True) -> None:
    """Refuse a checkpoint that belongs to something else. Raises ConfigError. Spec: SP-58, SP-83."""
    if different := kept.differences(wanted, begun=begun):
        raise ConfigError(
            f"The checkpoint {path} belongs to another job: {'; '.join(different)}. Going on would skip or repeat "
            "records. Give this job a checkpoint and a sink of its own.",
            problems=tuple(different),
        )
