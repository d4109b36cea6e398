"""One member of a classic group, step by step: every request is a method, and no request is sent automatically."""

from __future__ import annotations

import struct
from types import TracebackType
from typing import Any, Self

from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kclient.generated.leave_group_request import LeaveGroupRequest, MemberIdentity
from kclient.generated.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kclient.protocol import errors
from tests.conformance.raw_client import SECONDS
from tests.conformance.target import Target, eventually


def subscription(*topics: str, user_data: bytes = b"") -> bytes:
    """The blob of the protocol type "consumer" in version 0. Coordinators of 4.x read it, and hang on any other."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", len(user_data)) + user_data


SUBSCRIPTION = subscription("flights")
OTHER = subscription("weather")
PROTOCOLS = (("range", SUBSCRIPTION),)


class Member:
    """Its own connection; `member_id` and `generation` are what the last successful join said.

    Versions are the newest ones of the target unless `versions` names some.
    """

    def __init__(
        self,
        target: Target,
        group: str,
        *,
        instance_id: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = PROTOCOLS,
        protocol_type: str = "consumer",
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 10_000,
        versions: dict[str, int] | None = None,
    ) -> None:
        self.target, self.group, self.instance_id = target, target.coordinated(group), instance_id
        self.protocols, self.protocol_type = protocols, protocol_type
        self.session_timeout_ms, self.rebalance_timeout_ms = session_timeout_ms, rebalance_timeout_ms
        self.versions = versions or {}
        self.raw_client = target.connect()
        self.member_id, self.generation = "", -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.raw_client.__exit__()

    def version(self, api: str) -> int:
        """The version that this member speaks."""
        return self.versions.get(api, self.target.newest(api))

    # --- join

    def join_request(self, **changes: Any) -> JoinGroupRequest:
        """What `join` sends, with some fields changed."""
        fields: dict[str, Any] = {
            "group_id": self.group,
            "session_timeout_ms": self.session_timeout_ms,
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": self.protocol_type,
            "protocols": [
                JoinGroupRequestProtocol(name=name, metadata=blob) for name, blob in self.protocols
            ],
        }
        if self.version("JoinGroup") == 0:
            del fields["rebalance_timeout_ms"]
        return JoinGroupRequest(**{**fields, **changes})

    def send_join(self, **changes: Any) -> None:
        """Ask to join and leave the response for `joined`, which may be long in coming."""
        self.raw_client.send(self.join_request(**changes), self.version("JoinGroup"))

    def joined(self, timeout: float = SECONDS) -> Any:
        """The response to `send_join`; if it succeeded, its member id and generation are this member's from now on."""
        response = self.raw_client.receive(timeout)
        if response.error_code == errors.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        if response.error_code == errors.NONE:
            self.member_id, self.generation = response.member_id, response.generation_id
        return response

    def ask_to_join(self, **changes: Any) -> Any:
        """One JoinGroup and its response, whatever it is."""
        self.send_join(**changes)
        return self.joined()

    def begin(self) -> Self:
        """Get a member id where the version requires one, then send JoinGroup; `joined` returns the response."""
        if not self.member_id and self.instance_id is None and self.version("JoinGroup") >= 4:
            response = self.ask_to_join()
            assert response.error_code == errors.MEMBER_ID_REQUIRED, response
        self.send_join()
        return self

    def queue(self, witness: Member) -> Self:
        """Ask to join a group that `witness` is in: parked now, as the witness's heartbeat says."""
        self.begin()
        eventually(witness.heartbeat, lambda code: code == errors.REBALANCE_IN_PROGRESS)
        return self

    def join(self) -> Any:
        """Join the group; the response has no error."""
        response = self.begin().joined()
        assert response.error_code == errors.NONE, response
        return response

    # --- sync

    def sync_request(self, plan: dict[str, bytes] | None = None, **changes: Any) -> SyncGroupRequest:
        """What `sync` sends, with some fields changed."""
        named = self.version("SyncGroup") >= 5
        fields: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": self.protocol_type if named else None,
            "protocol_name": self.protocols[0][0] if named else None,
            "assignments": [
                SyncGroupRequestAssignment(member_id=member_id, assignment=blob)
                for member_id, blob in (plan or {}).items()
            ],
        }
        return SyncGroupRequest(**{**fields, **changes})

    def send_sync(self, plan: dict[str, bytes] | None = None, **changes: Any) -> None:
        """Send SyncGroup; `synced` returns the response."""
        self.raw_client.send(self.sync_request(plan, **changes), self.version("SyncGroup"))

    def synced(self, timeout: float = SECONDS) -> Any:
        """The response to `send_sync`."""
        return self.raw_client.receive(timeout)

    def sync(self, plan: dict[str, bytes] | None = None, **changes: Any) -> Any:
        """One SyncGroup and its response."""
        self.send_sync(plan, **changes)
        return self.synced()

    def settle(self) -> Self:
        """Join and sync as the only member: the group is Stable with the assignment b"plan"."""
        self.join()
        response = self.sync({self.member_id: b"plan"})
        assert response.error_code == errors.NONE, response
        return self

    # --- the rest

    def heartbeat(self, **changes: Any) -> int:
        """The error code of one heartbeat."""
        fields: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
        }
        return int(
            self.raw_client.ask(
                HeartbeatRequest(**{**fields, **changes}), self.version("Heartbeat")
            ).error_code
        )

    def leave(self) -> Any:
        """Leave the group: the response."""
        version = self.version("LeaveGroup")
        if version < 3:
            request = LeaveGroupRequest(group_id=self.group, member_id=self.member_id)
        else:
            leaving = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
            request = LeaveGroupRequest(group_id=self.group, members=[leaving])
        return self.raw_client.ask(request, version)


def pair(target: Target, group: str, **settings: Any) -> tuple[Member, Member]:
    """A leader and a follower, joined in generation 2 and not yet synced."""
    leader, follower = Member(target, group, **settings), Member(target, group, **settings)
    leader.settle()
    follower.queue(leader)
    leader.send_join()
    assert leader.joined().error_code == errors.NONE
    assert follower.joined().error_code == errors.NONE
    return leader, follower


def settled_pair(target: Target, group: str, **settings: Any) -> tuple[Member, Member]:
    """The same in Stable, with the assignments b"L" and b"F"."""
    leader, follower = pair(target, group, **settings)
    assert leader.sync({leader.member_id: b"L", follower.member_id: b"F"}).assignment == b"L"
    assert follower.sync().assignment == b"F"
    return leader, follower
