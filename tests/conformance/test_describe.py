"""DescribeConfigs and DescribeCluster: what the cluster says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.generated.describe_cluster_request import DescribeClusterRequest
from kclient.generated.describe_cluster_response import DescribeClusterBroker
from kclient.generated.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kclient.protocol import errors
from tests.conformance.target import Target, fresh

TOPIC, BROKER = 2, 4
OF_TOPIC, STATIC, DEFAULT = 1, 4, 5  # config_source
NOT_ASKED = -2147483648


def describe(
    target: Target, version: int, kind: int, name: str, keys: list[str] | None = None, **fields: Any
) -> Any:
    """What DescribeConfigs says of one resource."""
    row = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    [response] = target.ask(DescribeConfigsRequest(resources=[row], **fields), version).results
    assert (response.resource_type, response.resource_name) == (kind, name)
    return response


@pytest.mark.api("DescribeConfigs")
def test_a_topics_settings_and_where_they_come_from(target: Target, version: int) -> None:
    topic = target.topic(retention_ms=-1, max_message_bytes=5000)
    keys = ["retention.ms", "max.message.bytes", "cleanup.policy", "message.timestamp.type"]
    response = describe(target, version, TOPIC, topic, keys)
    assert response.error_code == errors.NONE
    rows = {row.name: row for row in response.configs}
    assert {name: row.value for name, row in rows.items()} == {
        "retention.ms": "-1",
        "max.message.bytes": "5000",
        "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
    }
    if version >= 1:
        sources = [rows[key].config_source for key in keys]
        assert sources == [OF_TOPIC, OF_TOPIC, DEFAULT, DEFAULT]
    assert not any(row.read_only or row.is_sensitive for row in rows.values())


@pytest.mark.api("DescribeConfigs", few=True)
def test_without_keys_all_settings_of_a_topic_are_reported(target: Target, topic: str, version: int) -> None:
    names = {row.name for row in describe(target, version, TOPIC, topic).configs}
    assert names >= {
        "cleanup.policy",
        "max.message.bytes",
        "retention.ms",
        "segment.bytes",
        "compression.type",
    }


@pytest.mark.api("DescribeConfigs", few=True)
def test_an_unknown_topic(target: Target, version: int) -> None:
    response = describe(target, version, TOPIC, "no-such-topic")
    assert (response.error_code, response.configs) == (errors.UNKNOWN_TOPIC_OR_PARTITION, [])


@pytest.mark.api("DescribeConfigs", few=True)
def test_an_invalid_topic(target: Target, version: int) -> None:
    assert describe(target, version, TOPIC, "a b").error_code == errors.INVALID_TOPIC_EXCEPTION


@pytest.mark.api("DescribeConfigs", few=True)
def test_settings_of_the_broker(target: Target, version: int) -> None:
    key = "offsets.topic.num.partitions"
    response = describe(target, version, BROKER, "1", [key])
    [row] = response.configs
    assert (response.error_code, row.name, row.value, row.read_only) == (errors.NONE, key, "5", True)
    if version >= 1:
        assert row.config_source == STATIC


@pytest.mark.api("DescribeConfigs", few=True)
@pytest.mark.parametrize("name", ["2", "one"])
def test_another_broker_is_not_known_here(target: Target, version: int, name: str) -> None:
    response = describe(target, version, BROKER, name)
    assert (response.error_code, response.configs) == (errors.INVALID_REQUEST, [])


@pytest.mark.spec("S1-33")
def test_the_internal_topics_have_their_settings(target: Target, group: str) -> None:
    target.coordinated(group)
    target.coordinated(fresh("transaction"), 1)
    version = target.newest("DescribeConfigs")

    def own(topic: str) -> dict[str, str]:
        rows = describe(target, version, TOPIC, topic).configs
        return {row.name: row.value for row in rows if row.config_source == OF_TOPIC}

    offsets, transactions = own("__consumer_offsets"), own("__transaction_state")
    assert offsets == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    assert transactions == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "segment.bytes": "104857600",
        "min.insync.replicas": "1",
        "unclean.leader.election.enable": "false",
    }


@pytest.mark.api("DescribeCluster")
def test_the_cluster_describes_itself(target: Target, version: int) -> None:
    response = target.ask(DescribeClusterRequest(), version)
    assert (response.error_code, response.controller_id) == (errors.NONE, 1)
    assert response.cluster_id
    assert response.cluster_authorized_operations == NOT_ASKED
    assert response.brokers == [DescribeClusterBroker(broker_id=1, host=target.host, port=target.port)]


@pytest.mark.api("DescribeCluster", 1, few=True)
def test_controllers_are_not_described_by_a_broker(target: Target, version: int) -> None:
    response = target.ask(DescribeClusterRequest(endpoint_type=2), version)
    assert response.error_code == errors.MISMATCHED_ENDPOINT_TYPE
    assert target.ask(DescribeClusterRequest(endpoint_type=9), version).error_code == (
        errors.UNSUPPORTED_ENDPOINT_TYPE
    )
