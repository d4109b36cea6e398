"""The settings of a member process: its members, their configuration, and how they commit."""

from __future__ import annotations

import enum
import json
from typing import Any, Self

import attrs

POLL_SECONDS = 0.2


class Commits(enum.Enum):
    """How the members of kclient commit in a cycle."""

    SYNC = "sync"
    ASYNC = "async"
    AUTO = "auto"


@attrs.define
class Order:
    """One process: `kind` is sync, async (kclient) or confluent. `stopping` becomes true with SIGTERM."""

    kind: str
    names: list[str]
    topic: str
    settings: dict[str, Any]  # Kafka's dotted names
    commits: Commits
    static: bool
    journal: str
    stopping: bool = False

    def settings_of(self, name: str) -> dict[str, Any]:
        """The settings of one member. A static one keeps its instance id when its process is started again."""
        own = {"client.id": name}
        if self.static:
            own["group.instance.id"] = name.partition("#")[0]
        return {**self.settings, **own, "enable.auto.commit": self.commits is Commits.AUTO}

    def to_json(self) -> str:
        fields = {one.name: getattr(self, one.name) for one in attrs.fields(type(self))}
        return json.dumps({**fields, "commits": self.commits.value})

    @classmethod
    def from_json(cls, text: str) -> Self:
        fields = json.loads(text)
        return cls(**{**fields, "commits": Commits(fields["commits"])})
