"""Whose checkpoint it is: what must stay the same for a job to go on, and what is refused when it does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from kclient.errors import ConfigError
from kclient.spark.jobs.values import Location, location, matches

_KINDS: Final[Mapping[str, Any]] = {
    "job": str,
    "cluster_id": str | None,
    "topics": list,
    "sink": str,
    "engine": str,
    "writer": str,
    "format": str | None,
    "topic_ids": dict,
}


@attrs.frozen(kw_only=True)
class Job:
    """What must stay the same for a checkpoint to go on. `job` is drawn once and names the job in its manifests.

    `format` is None in a checkpoint of a release that did not keep it.
    """

    job: str
    cluster_id: str | None
    topics: tuple[str, ...]
    sink: str
    engine: str
    writer: str
    format: str | None = None
    topic_ids: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def place(self) -> Location:
        """The sink."""
        return location(self.sink)

    def reads(self, topic: str) -> bool:
        """Whether a topic is one of its own, or would be if it came to be."""
        return any(matches(name, topic) for name in self.topics)

    def differences(self, other: Job) -> list[str]:
        """What makes it another job, one sentence each. Topics that are new or have an id now do not count."""
        found = [
            f"its {what} {was!r}, not {now!r}"
            for what, was, now in (
                ("cluster id is", self.cluster_id, other.cluster_id),
                ("topics are", ",".join(sorted(self.topics)), ",".join(sorted(other.topics))),
                ("sink is", self.sink, other.sink),
            )
            if was != now
        ]
        anew = [topic for topic, was in self.topic_ids.items() if other.topic_ids.get(topic, was) != was]
        return found + [f"topic {topic} was deleted and made anew since" for topic in anew]


def job_of(content: Mapping[str, Any]) -> Job:
    """The job that a checkpoint keeps. Raises ValueError, TypeError for what is none."""
    kept = {"topic_ids": {}, **content}
    for name, kind in _KINDS.items():
        if not isinstance(kept.get(name), kind):
            raise ValueError(f"its {name} cannot be {kept.get(name)!r}")
    texts = (*kept["topics"], *kept["topic_ids"].values())
    if strange := [text for text in texts if not isinstance(text, str)]:
        raise ValueError(f"its topics cannot be {strange}")
    sink = str(location(kept["sink"]))  # which a release before kept with its `..`
    return Job(**{**kept, "topics": tuple(kept["topics"]), "sink": sink})


def check_same(path: Path, kept: Job, wanted: Job) -> None:
    """Refuse a checkpoint that belongs to something else. Raises ConfigError."""
    if different := kept.differences(wanted):
        raise ConfigError(
            f"The checkpoint {path} belongs to another job: {'; '.join(different)}. Going on would skip or repeat "
            "records. Give this job a checkpoint and a sink of its own.",
            problems=tuple(different),
        )


def check_kept(path: Path, kept: Job, given: Mapping[str, str]) -> None:
    """Refuse the same job done in another way than it began with: engine, writer, format. Raises ConfigError."""
    changed = {name: was for name, now in given.items() if (was := getattr(kept, name)) not in (None, now)}
    if changed:
        options = " ".join(f"--{name} {was}" for name, was in changed.items())
        different = [f"its {name} is {was!r}, not {given[name]!r}" for name, was in changed.items()]
        raise ConfigError(
            f"The job of the checkpoint {path} keeps to what it began with: {'; '.join(different)}. All that it lands "
            f"must fit together. Add {options}, or give another job a checkpoint and a sink of its own.",
            problems=tuple(different),
        )
