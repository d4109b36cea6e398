"""From wire codes and broken connections to what the user reads."""

from __future__ import annotations

import pickle

import pytest

from kclient.errors import BrokerError, ConnectError, GroupAuthorizationError, TopicAuthorizationError
from kclient.network import errors
from kclient.network.errors import broker_error
from kclient.network.peer import Peer


@pytest.mark.spec("B.15.1")
@pytest.mark.parametrize(
    ("code", "name", "retriable"),
    [
        (15, "COORDINATOR_NOT_AVAILABLE", True),
        (6, "NOT_LEADER_OR_FOLLOWER", True),
        (8, "BROKER_NOT_AVAILABLE", False),
        (22, "ILLEGAL_GENERATION", False),
        (58, "SASL_AUTHENTICATION_FAILED", False),
        (-1, "UNKNOWN_SERVER_ERROR", False),
        (9999, "UNKNOWN_SERVER_ERROR", False),
    ],
)
def test_a_code_keeps_its_number_and_name_and_reports_whether_it_passes(
    code: int, name: str, retriable: bool
) -> None:
    error = broker_error(code, "finding the coordinator of group g")
    assert isinstance(error, BrokerError)
    assert (error.code, error.name, error.retriable) == (code, name, retriable)
    assert str(error).startswith(f"finding the coordinator of group g was refused with {name} ({code})")


@pytest.mark.spec("B.15.1", "U-07")
def test_authorization_names_what_is_needed() -> None:
    topics = broker_error(29, "fetching", topics=["b", "a"])
    assert isinstance(topics, TopicAuthorizationError)
    assert topics.topics == ("a", "b")
    assert topics.needs == "READ on Topic:a and READ on Topic:b"
    group = broker_error(30, "joining", group="g", principal="User:alice")
    assert isinstance(group, GroupAuthorizationError)
    assert (group.group, group.needs, group.principal) == ("g", "READ on Group:g", "User:alice")
    assert "READ on Group:g" in str(group)


def test_the_brokers_own_words_are_passed_on() -> None:
    assert 'is too old"' in str(broker_error(42, "joining", message="the rack id is too old"))


PEER = Peer("broker", 9092, 3, "10.0.0.1")


@pytest.mark.parametrize(
    "error",
    [
        errors.name_not_resolved(PEER, 0.1, OSError(-2, "Name or service not known")),
        errors.not_connected(PEER, 0.1, ConnectionRefusedError(111, "refused")),
        errors.no_response(PEER, 0.1, "tcp"),
        errors.no_response(PEER, 0.1, "versions"),
        errors.closed_early(PEER, 0.1),
        errors.lost(PEER, "waiting for the answer to Fetch", "reset"),
        errors.not_kafka(PEER, 0.1, b"HTTP"),
        errors.speaks_tls(PEER, 0.1),
        errors.bad_versions(PEER, "nothing"),
        errors.no_common_version(PEER, "Fetch", (4, 18), None),
    ],
)
def test_every_connect_error_says_what_where_why_and_what_to_do(error: ConnectError) -> None:
    assert (error.host, error.port, error.node_id) == ("broker", 9092, 3)
    assert error.stage
    assert "node 3 at broker:9092 [10.0.0.1]" in error.text
    assert error.text.count(". ") >= 2, "three sentences: what, why, what next"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), vars(again)) == (str(error), vars(error))


def test_ipv6_addresses_are_reported_with_brackets() -> None:
    assert Peer("::1", 9092).address == "[::1]:9092"
    assert str(Peer("localhost", 9092)) == "bootstrap server localhost:9092"


def test_an_impossible_topic_name_is_reported_with_what_names_may_be() -> None:
    assert "letters, digits" in str(broker_error(17, "reading the metadata of a b"))
