"""DescribeConfigs: the settings of topics and brokers that are in force, and where they come from."""

from __future__ import annotations

from typing import Final

from kclient.embedded import topic_config
from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import CLUSTER
from kclient.embedded.request_context import RequestContext
from kclient.embedded.settings import KEYS as BROKER_KEYS
from kclient.embedded.topic_config import BROKER, CLUSTER_DEFAULT, DEFAULT, TOPIC, ConfigEntry
from kclient.generated.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kclient.generated.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kclient.network.metadata import is_legal_topic
from kclient.protocol.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)

TOPICS: Final = 2
BROKERS: Final = 4
TYPES: Final = {bool: 1, str: 2, int: 3}


async def handle(context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """The keys that were asked for of each thing, all with null."""
    results = []
    for one in request.resources:
        try:
            results.append(_described(context, request, one))
        except ApiError as exc:
            results.append(_failed(one, exc))
    return DescribeConfigsResponse(results=results)


def error_response(
    context: RequestContext, request: DescribeConfigsRequest, error: ApiError
) -> DescribeConfigsResponse:
    """Return the error code for every requested resource."""
    return DescribeConfigsResponse(results=[_failed(one, error) for one in request.resources])


def _failed(asked: DescribeConfigsResource, no: ApiError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=no.code,
        error_message=no.message,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
    )


def _described(
    context: RequestContext, request: DescribeConfigsRequest, asked: DescribeConfigsResource
) -> DescribeConfigsResult:
    if asked.resource_type == TOPICS:
        rows = _of_topic(context, request, asked.resource_name)
    elif asked.resource_type == BROKERS:
        rows = _of_broker(context, request, asked.resource_name)
    else:
        raise ApiError(INVALID_REQUEST, f"Unsupported resource type: {asked.resource_type}")
    keys = asked.configuration_keys
    # an empty list meant all keys until 2.0, and librdkafka and others send one to this day
    chosen = [row for row in rows if not keys or row.name in keys]
    return DescribeConfigsResult(
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=chosen,
    )


def _of_topic(
    context: RequestContext, request: DescribeConfigsRequest, name: str
) -> list[DescribeConfigsResourceResult]:
    state = context.state
    if not context.allowed("DESCRIBE_CONFIGS", f"Topic:{name}"):
        raise ApiError(TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    if not is_legal_topic(name):
        raise ApiError(INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: '{name}'")
    topic = state.topics.get(name)
    if topic is None:
        raise ApiError(UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    rows = []
    for row in topic_config.described(topic.config, state.settings, state.release):
        result = DescribeConfigsResourceResult(
            name=row.name,
            value=row.value,
            is_default=context.version == 0 and row.source == DEFAULT,
            config_source=row.source,
            config_type=topic_config.KEYS[row.name].kind,
            documentation=None,
        )
        if request.include_synonyms:
            result.synonyms = _synonyms(context, row)
        rows.append(result)
    return rows


def _synonyms(context: RequestContext, row: ConfigEntry) -> list[DescribeConfigsSynonym]:
    """The topic's value, then the broker's, then the default: what there is of them."""
    settings, found = context.state.settings, []
    if row.source == TOPIC:
        found.append(DescribeConfigsSynonym(name=row.name, value=row.value, source=TOPIC))
    if row.synonym and topic_config.broker_source(row.synonym, settings) == BROKER:
        inherited = topic_config.inherited(row.name, settings)
        found.append(DescribeConfigsSynonym(name=row.synonym, value=inherited, source=BROKER))
    if row.source == CLUSTER_DEFAULT:
        found.append(DescribeConfigsSynonym(name=row.synonym, value=row.value, source=CLUSTER_DEFAULT))
    if row.synonym and not topic_config.KEYS[row.name].unset:
        default = topic_config.KEYS[row.name].default
        found.append(DescribeConfigsSynonym(name=row.synonym, value=default, source=DEFAULT))
    return found


def _of_broker(
    context: RequestContext, request: DescribeConfigsRequest, name: str
) -> list[DescribeConfigsResourceResult]:
    if not context.allowed("DESCRIBE_CONFIGS", CLUSTER):
        raise ApiError(CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    if name == "":
        return _of_all_brokers(context)
    if name != str(context.broker.node_id):
        text = f"Unexpected broker id, expected {context.broker.node_id} or empty string, but received {name}"
        raise ApiError(INVALID_REQUEST, text)
    rows = []
    for key, field in BROKER_KEYS.items():
        source = topic_config.broker_source(key, context.state.settings)
        value = topic_config.as_text(getattr(context.state.settings, field.name))
        row = DescribeConfigsResourceResult(
            name=key,
            value=value,
            read_only=True,
            is_default=context.version == 0 and source == DEFAULT,
            config_source=source,
            config_type=TYPES[type(field.default)],
            documentation=None,
        )
        if request.include_synonyms:
            given = [(value, BROKER)] if source == BROKER else []
            row.synonyms = [
                DescribeConfigsSynonym(name=key, value=text, source=place)
                for text, place in (*given, (topic_config.as_text(field.default), DEFAULT))
            ]
        rows.append(row)
    return rows


def _of_all_brokers(context: RequestContext) -> list[DescribeConfigsResourceResult]:
    """What was set for the whole cluster while it ran: nothing but what a new cluster of 4.1 sets itself."""
    state, key = context.state, "min.insync.replicas"
    if state.release < topic_config.CLUSTER_DEFAULTS_SINCE:
        return []
    row = DescribeConfigsResourceResult(
        name=key,
        value=topic_config.inherited(key, state.settings),
        config_source=CLUSTER_DEFAULT,
        config_type=topic_config.KEYS[key].kind,
        documentation=None,
    )
    return [row]
