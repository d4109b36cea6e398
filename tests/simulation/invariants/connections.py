"""What goes over the wire: responses to their requests, few connections, few of both when nothing helps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kclient.embedded.received_request import ReceivedRequest
from kclient.errors import InvalidFrameError, ProtocolDecodeError
from kclient.generated.offset_commit_response import OffsetCommitResponse
from kclient.network.connection import MAX_IN_FLIGHT
from kclient.protocol.message import Message
from kclient.protocol.primitives import ZERO_UUID
from kclient.runtime import Address
from tests.simulation.application import Member
from tests.simulation.faults.shapes import UNHEARD_OF
from tests.simulation.watch import Invariant

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

LOOK_EVERY: Final = 8  # polls
REQUESTS_A_SECOND: Final = 40
ATTEMPTS_A_SECOND: Final = 40
PACED: Final = (  # by the client itself; fetches and commits follow the records and the application
    "ApiVersions",
    "ConsumerGroupHeartbeat",
    "FindCoordinator",
    "Heartbeat",
    "JoinGroup",
    "ListOffsets",
    "Metadata",
    "OffsetFetch",
    "OffsetForLeaderEpoch",
    "SyncGroup",
)


class Pairing(Invariant):
    """A response is one to the request that it is given to: the same API, and nothing that was not asked for."""

    id = "I-16"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.fetched: dict[int, set[tuple[object, int]]] = {}  # by the fetch session, which implies it

    def exchanged(self, request: Message, response: Message) -> None:
        name = request.NAME.removesuffix("Request")
        if f"{name}Response" != response.NAME:
            self.broken(f"{request.NAME} was answered with {response.NAME}")
        elif name in ("Fetch", "OffsetCommit", "ListOffsets", "OffsetForLeaderEpoch"):
            asked = set(_partitions(request))
            if name == "Fetch":
                asked |= self._of_session(request, response, asked)
            strange = {one for one in _partitions(response) if one[1] != UNHEARD_OF} - asked
            if strange:
                self.broken(f"{response.NAME} is about {min(strange)}, which was not asked for")

    def _of_session(
        self, request: Any, response: Any, asked: set[tuple[object, int]]
    ) -> set[tuple[object, int]]:
        """What the session fetches with this request; a full one may begin one."""
        if request.session_epoch <= 0:
            if response.session_id:
                self.fetched[response.session_id] = asked
            return asked
        fetched = self.fetched.get(request.session_id, set()) | asked
        for topic in request.forgotten_topics_data:
            fetched -= {(topic.topic, number) for number in topic.partitions}
            fetched -= {(topic.topic_id, number) for number in topic.partitions}
        self.fetched[request.session_id] = fetched
        return fetched

    def raised(self, member: Member, call: str, error: BaseException) -> None:
        if isinstance(error, InvalidFrameError | ProtocolDecodeError):
            self.broken(f"{member}: {call} raised {error!r}, and every broker speaks properly")


def _partitions(message: Any) -> Iterator[tuple[object, int]]:
    """Topic and number of each partition that a message is about; the topic under its name, its id, or both."""
    for topic in message.responses if message.NAME == "FetchResponse" else message.topics:
        names = [getattr(topic, field, None) for field in ("name", "topic", "topic_id")]
        for part in topic.partitions:
            number = getattr(part, "partition_index", None)
            for name in filter(None, names):
                if name != ZERO_UUID:
                    yield name, part.partition if number is None else number


def _codes(response: OffsetCommitResponse) -> Iterator[int]:
    return (part.error_code for topic in response.topics for part in topic.partitions)


class NoHotLoop(Invariant):
    """Whatever does not help is done again after a pause: so many requests and attempts to connect in a second."""

    id = "I-26"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.second = 0
        self.counts: Counter[tuple[str, object]] = Counter()

    def requested(self, call: ReceivedRequest) -> None:
        if call.api in PACED:
            self._count((call.client_id, call.api), REQUESTS_A_SECOND)

    def answered(self, call: ReceivedRequest, response: Message | None) -> None:
        """A commit that was refused for good is the application's to try again, and that takes its time.

        Asynchronous ones are the application's own: the client sends each once, as often as it is asked.
        """
        if self.stage.scenario.commit == "async":
            return
        if isinstance(response, OffsetCommitResponse) and any(_codes(response)):
            self._count((call.client_id, "a commit in vain"), REQUESTS_A_SECOND)

    def connecting(self, member: Member, address: Address) -> None:
        self._count((member.name, address), ATTEMPTS_A_SECOND)

    def _count(self, key: tuple[str, object], most: int) -> None:
        second = int(self.stage.now)
        if second != self.second:
            self.second = second
            self.counts.clear()
        self.counts[key] += 1
        if self.counts[key] == most + 1:
            self.broken(f"{key[0]}: more than {most} times {key[1]} in a second")


class FewConnections(Invariant):
    """At most one connection for each broker, one for the coordinator, one for the bootstrap server."""

    id = "I-34"

    def poll_ended(self, member: Member, count: int) -> None:
        if member.polls % LOOK_EVERY:
            return
        host, network = self.stage.hosts[member.name], self.stage.world.network
        open_ones = [
            one for one in network.connections.values() if one.client.host is host and not one.client.gone
        ]
        if len(open_ones) > self.stage.scenario.brokers + 2:
            self.broken(f"{member} has {len(open_ones)} connections to {self.stage.scenario.brokers} brokers")


class FewPending(Invariant):
    """No more requests wait for their responses than a connection may have under way."""

    id = "I-35"

    def poll_ended(self, member: Member, count: int) -> None:
        if member.polls % LOOK_EVERY or member.consumer is None:
            return
        for node in member.consumer._core.cluster._pool._all():
            if node.connection is not None and node.connection.in_flight > MAX_IN_FLIGHT:
                self.broken(f"{member} waits for {node.connection.in_flight} answers of {node.peer}")


ALL = [Pairing, NoHotLoop, FewConnections, FewPending]
