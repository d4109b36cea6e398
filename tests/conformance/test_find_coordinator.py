"""FindCoordinator: groups, transactions, one key or several."""

from __future__ import annotations

import pytest

from kclient.generated.find_coordinator_request import FindCoordinatorRequest
from kclient.generated.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kclient.protocol import errors
from tests.conformance.target import Target, eventually, fresh

pytestmark = pytest.mark.api("FindCoordinator", few=True)

GROUP, TRANSACTION, SHARE = 0, 1, 2
SEVERAL = 4


def found(target: Target, version: int, key: str, key_type: int = GROUP) -> tuple[int, int, str, int]:
    """Error code, node, host and port for one key, in any version."""
    if version >= SEVERAL:
        request = FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)
        [row] = target.ask(request, version).coordinators
        assert row.key == key
    else:
        kind = {"key_type": key_type} if version >= 1 else {}
        row = target.ask(FindCoordinatorRequest(key=key, **kind), version)
    return row.error_code, row.node_id, row.host, row.port


@pytest.mark.spec("S1-10", "S4-14", "S1-36")
@pytest.mark.api("FindCoordinator", few=True)
def test_a_group_has_a_coordinator(target: Target, group: str, version: int) -> None:
    target.coordinated(group)
    assert found(target, version, group) == (errors.NONE, 1, target.host, target.port)


@pytest.mark.spec("S1-37")
@pytest.mark.api("FindCoordinator", 1, few=True)
def test_a_transaction_has_a_coordinator(target: Target, version: int) -> None:
    key = target.coordinated(fresh("transaction"), TRANSACTION)
    assert found(target, version, key, TRANSACTION) == (errors.NONE, 1, target.host, target.port)


@pytest.mark.spec("S1-03", "S1-05")
@pytest.mark.api("FindCoordinator", 1, few=True)
def test_both_internal_topics_exist_from_then_on(target: Target, group: str, version: int) -> None:
    target.coordinated(group)
    target.coordinated(fresh("transaction"), TRANSACTION)
    for name, partitions in (("__consumer_offsets", 5), ("__transaction_state", 3)):
        topic = target.metadata(name)
        assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (errors.NONE, True, partitions)


@pytest.mark.spec("S1-08")
@pytest.mark.api("FindCoordinator", 1, few=True)
def test_an_unknown_kind_of_key_is_refused(target: Target, group: str, version: int) -> None:
    assert found(target, version, group, 9)[0] == errors.INVALID_REQUEST


@pytest.mark.spec("S1-08")
@pytest.mark.api("FindCoordinator", SEVERAL, few=True)
@pytest.mark.parametrize("key", ["group", "group:AAAAAAAAAAAAAAAAAAAAAA"])
def test_a_share_key_needs_version_6_and_its_form(target: Target, version: int, key: str) -> None:
    assert found(target, version, key, SHARE)[0] == errors.INVALID_REQUEST


@pytest.mark.api("FindCoordinator", 1)
def test_the_text_of_a_found_coordinator_is_none(target: Target, group: str, version: int) -> None:
    target.coordinated(group)
    if version >= SEVERAL:
        request = FindCoordinatorRequest(coordinator_keys=[group])
        row = Coordinator(
            key=group, node_id=1, host=target.host, port=target.port, error_code=0, error_message=None
        )
        [response] = target.ask(request, version).coordinators
        row.error_message = response.error_message
        assert response == row
        assert response.error_message in ("NONE", "", None)
    else:
        response = target.ask(FindCoordinatorRequest(key=group), version)
        assert response == FindCoordinatorResponse(
            error_message="NONE", node_id=1, host=target.host, port=target.port
        )


@pytest.mark.api("FindCoordinator", SEVERAL, few=True)
def test_several_keys_are_answered_each(target: Target, version: int) -> None:
    keys = [target.coordinated(fresh("group")) for _ in range(3)]
    response = target.ask(FindCoordinatorRequest(coordinator_keys=keys), version)
    assert [(row.key, row.error_code, row.node_id) for row in response.coordinators] == [
        (key, errors.NONE, 1) for key in keys
    ]


@pytest.mark.api("FindCoordinator", SEVERAL, few=True)
def test_no_keys_no_responses(target: Target, version: int) -> None:
    response = target.ask(FindCoordinatorRequest(coordinator_keys=[]), version)
    assert response.coordinators == []


def test_an_empty_group_has_a_coordinator_too(target: Target, version: int) -> None:
    eventually(lambda: found(target, version, "")[0], lambda code: code == errors.NONE)
