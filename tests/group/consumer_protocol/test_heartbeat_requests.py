"""The heartbeats that a member builds, and what an error code in the response leads to."""

from __future__ import annotations

import pytest

from kclient.config import Config
from kclient.errors import BrokerError, GroupAuthorizationError, VersionError
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.group.consumer_protocol.assignment import LocalAssignment
from kclient.group.consumer_protocol.heartbeat import (
    ACTIONS,
    HeartbeatAction,
    HeartbeatRequests,
    action_for,
    heartbeat_error,
)
from kclient.group.consumer_protocol.member import leave_epoch
from kclient.group.consumer_protocol.state import (
    ConsumerSubscription,
)
from kclient.group.coordinator import VersionedRequest
from kclient.protocol import errors as codes

# --- what it says


def config(**keys: object) -> Config:
    return Config(bootstrap_servers=("h:1",), group_id="g", group_protocol="consumer", **keys)  # type: ignore[arg-type]


def requests(**keys: object) -> HeartbeatRequests:
    return HeartbeatRequests(config(**keys), "g")


def said(form: VersionedRequest) -> dict[str, object]:
    """The fields that a heartbeat does not leave unsaid, but for those of every heartbeat."""
    request = form.message
    assert isinstance(request, ConsumerGroupHeartbeatRequest)
    fields = {
        "rack": request.rack_id,
        "timeout": None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
        "topics": request.subscribed_topic_names,
        "regex": request.subscribed_topic_regex,
        "assignor": request.server_assignor,
        "owned": request.topic_partitions,
    }
    return {name: value for name, value in fields.items() if value is not None}


T, U = b"t" * 16, b"u" * 16
WANTED = ConsumerSubscription(("a", "b"))


@pytest.mark.spec("B.17.2", "A-14")
def test_the_first_heartbeat_is_full_and_the_next_empty() -> None:
    heartbeats = requests(client_rack="r", max_poll_interval_ms=5_000, group_remote_assignor="uniform")
    first = heartbeats.join("m", 0, WANTED)
    everything = {"rack": "r", "timeout": 5_000, "topics": ["a", "b"], "assignor": "uniform", "owned": []}
    assert said(first) == everything
    later = heartbeats.stay("m", 3, WANTED, LocalAssignment())
    assert said(later) == {}
    assert (later.message.member_id, later.message.member_epoch) == ("m", 3)  # type: ignore[attr-defined]


@pytest.mark.spec("B.17.2")
def test_a_change_is_sent_once() -> None:
    heartbeats = requests()
    heartbeats.join("m", 0, WANTED)
    owned = LocalAssignment(1, {T: (0, 2)})
    assert said(heartbeats.stay("m", 1, ConsumerSubscription(("c",)), LocalAssignment())) == {"topics": ["c"]}
    (row,) = said(heartbeats.stay("m", 1, ConsumerSubscription(("c",)), owned))["owned"]  # type: ignore[misc, attr-defined]
    assert (row.topic_id, row.partitions) == (T, [0, 2])
    assert said(heartbeats.stay("m", 1, ConsumerSubscription(("c",)), owned)) == {}
    assert set(
        said(heartbeats.stay("m", 1, ConsumerSubscription(("c",)), LocalAssignment(2, {T: (0, 2)})))
    ) == {"owned"}


@pytest.mark.spec("B.17.2")
def test_after_a_failure_everything_is_sent_again_but_the_rack() -> None:
    heartbeats = requests(client_rack="r", group_remote_assignor="range")
    heartbeats.join("m", 0, WANTED)
    heartbeats.forget()
    again = said(heartbeats.stay("m", 1, WANTED, LocalAssignment(1, {T: (0,)})))
    assert set(again) == {"timeout", "topics", "assignor", "owned"}


@pytest.mark.spec("B.17.2")
def test_a_pattern_needs_version_1_and_an_empty_one_takes_it_back_also_after_a_failure() -> None:
    heartbeats = requests()
    first = heartbeats.join("m", 0, ConsumerSubscription(regex="a.*"))
    assert (said(first)["regex"], said(first)["topics"], first.lowest) == ("a.*", [], 1)
    assert heartbeats.stay("m", 1, ConsumerSubscription(regex="a.*"), LocalAssignment()).lowest == 0
    assert said(heartbeats.stay("m", 1, WANTED, LocalAssignment())) == {"topics": ["a", "b"], "regex": ""}
    heartbeats.forget()
    assert said(heartbeats.stay("m", 1, WANTED, LocalAssignment()))["regex"] == ""


@pytest.mark.spec("B.17.2")
def test_what_is_unset_is_null_and_never_empty() -> None:
    request = requests().join("m", 0, WANTED).message
    assert isinstance(request, ConsumerGroupHeartbeatRequest)
    assert (request.instance_id, request.rack_id, request.server_assignor) == (None, None, None)
    static = requests(group_instance_id="i").leave("m", -2).message
    assert isinstance(static, ConsumerGroupHeartbeatRequest)
    assert (static.instance_id, static.member_epoch) == ("i", -2)


@pytest.mark.spec("B.17.2", "B.18")
@pytest.mark.parametrize(
    ("leave", "instance_id", "epoch"),
    [
        (None, None, -1),
        (True, None, -1),
        (False, None, None),
        (None, "i", -2),
        (True, "i", -1),
        (False, "i", -2),
    ],
)
def test_the_epoch_of_the_last_heartbeat(
    leave: bool | None, instance_id: str | None, epoch: int | None
) -> None:
    assert leave_epoch(leave, instance_id) == epoch


# --- what answers mean


@pytest.mark.spec("B.17.4")
def test_every_code_has_its_action_and_what_is_not_listed_is_fatal() -> None:
    expected = {
        0: "ACCEPT",
        15: "FIND_COORDINATOR",
        16: "FIND_COORDINATOR",
        14: "RETRY",
        29: "RAISE_ON_POLL",
        25: "REJOIN",
        110: "REJOIN",
    }
    assert {code: action.name for code, action in ACTIONS.items()} == expected
    for code in (30, 42, 81, 112, 128, 35, 111, 82, 69, 7, -1, 9_999):
        assert action_for(code) is HeartbeatAction.FATAL


@pytest.mark.spec("B.17.4")
def test_refusals_are_typed_and_say_what_to_do() -> None:
    assert isinstance(heartbeat_error(codes.GROUP_AUTHORIZATION_FAILED, "g", None), GroupAuthorizationError)
    unsupported = heartbeat_error(codes.UNSUPPORTED_VERSION, "g", None)
    assert isinstance(unsupported, VersionError)
    assert "group_protocol" in unsupported.text
    double = heartbeat_error(codes.UNRELEASED_INSTANCE_ID, "g", "held by x")
    assert isinstance(double, BrokerError)
    assert double.code == 111
    assert "held by x" in double.text
    assert "group_instance_id" in double.text
    assert "group_remote_assignor" in heartbeat_error(codes.UNSUPPORTED_ASSIGNOR, "g", None).text
    assert "RE2" in heartbeat_error(codes.INVALID_REGULAR_EXPRESSION, "g", None).text
