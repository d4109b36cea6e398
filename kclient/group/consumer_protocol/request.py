"""The next heartbeat: who we are always, the rest only when joining or changed since the last one. Pure.

    always                  group, member id, epoch, instance id
    when joining            rack, and all that follows
    when it has changed     rebalance timeout, topics, pattern, assignor, owned partitions

After a failure of any kind nobody knows what the coordinator has heard, so the next heartbeat says everything again.
What is unset is null, never empty; an empty pattern takes back one that was told.
"""

from __future__ import annotations

from typing import Any, Final

from kclient.config import Config
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.group.consumer_protocol.assignment import Owned
from kclient.group.consumer_protocol.standing import Subscribed
from kclient.group.form import Form

REGEX_SINCE: Final = 1


class HeartbeatRequests:
    """The heartbeats of one member, each built on what those before have said."""

    def __init__(self, config: Config, group_id: str) -> None:
        self._always: dict[str, Any] = {"group_id": group_id, "instance_id": config.group_instance_id}
        self._rack_id = config.client_rack or None
        self._rebalance_timeout_ms = config.max_poll_interval_ms
        self._assignor = config.group_remote_assignor
        self._said: dict[str, Any] = {}
        self._regex_told = False  # the coordinator may know a pattern of ours

    def join(self, member_id: str, epoch: int, wanted: Subscribed) -> Form:
        """The first heartbeat: everything, and nothing is owned."""
        self.forget()
        fields = {"rack_id": self._rack_id, **self._news(wanted, Owned())}
        return self._form(member_id, epoch, fields)

    def stay(self, member_id: str, epoch: int, wanted: Subscribed, owned: Owned) -> Form:
        """Any later one: what has changed."""
        return self._form(member_id, epoch, self._news(wanted, owned))

    def says_owned(self, owned: Owned) -> bool:
        """Whether `stay` would say what is owned."""
        return self._said.get("topic_partitions") != owned

    def leave(self, member_id: str, epoch: int) -> Form:
        """The last one, with epoch −1, or −2 for a while."""
        return self._form(member_id, epoch, {})

    def forget(self) -> None:
        """A heartbeat failed: the next one says everything."""
        self._said = {}

    def _news(self, wanted: Subscribed, owned: Owned) -> dict[str, Any]:
        """The fields that differ from what was said last, noted as said."""
        regex = wanted.regex
        if regex is None and self._regex_told:
            regex = ""
        now = {
            "rebalance_timeout_ms": self._rebalance_timeout_ms,
            "subscribed_topic_names": wanted.topics,
            "subscribed_topic_regex": regex,
            "server_assignor": self._assignor,
            "topic_partitions": owned,
        }
        news = {
            name: value for name, value in now.items() if name not in self._said or self._said[name] != value
        }
        self._said = now
        self._regex_told = self._regex_told or regex is not None
        return news

    def _form(self, member_id: str, epoch: int, fields: dict[str, Any]) -> Form:
        owned, topics = fields.get("topic_partitions"), fields.get("subscribed_topic_names")
        if isinstance(owned, Owned):
            fields["topic_partitions"] = owned.on_the_wire()
        if topics is not None:
            fields["subscribed_topic_names"] = list(topics)
        request = ConsumerGroupHeartbeatRequest(
            member_id=member_id, member_epoch=epoch, **self._always, **fields
        )
        return Form(request, lowest=0 if request.subscribed_topic_regex is None else REGEX_SINCE)
