"""`kclient topics`: the topics of a cluster, how many records they have and get, their partitions and settings."""

from __future__ import annotations

import asyncio
import base64
import json as json_form
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import attrs
from cyclopts import App, Group, Parameter

from kclient.cli.admin_client import AdminClient
from kclient.cli.exit_codes import OK
from kclient.cli.options import ConnectionOptions, flag, option, seconds
from kclient.cli.table import table
from kclient.config import Config
from kclient.errors import AuthorizationError, BrokerError, VersionError
from kclient.generated.metadata_response import MetadataResponsePartition, MetadataResponseTopic
from kclient.positions.state import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kclient.protocol import errors as codes
from kclient.runtime import Runtime
from kclient.text import printable
from kclient.types import TopicPartition

COMMANDS = Group("Commands", sort_key=0)
NOTHING: Final = "-"
SET_ON_TOPIC: Final = 1
Connection = Annotated[ConnectionOptions, Parameter(name="*")]
NO_CONNECTION: Final = ConnectionOptions()
Json = Annotated[bool, flag("one JSON object on a line for each topic")]
Rate = Annotated[
    float | None,
    option("look twice with this time between, and show the records per second", "5s", converter=seconds),
]


def topics_app(group: Group) -> App:
    """Build the sub-app of the commands for topics; without a command it lists them."""
    app = App(name="topics", help="List topics and describe them.", group=group, group_commands=COMMANDS)
    app.default(list_command)
    app.command(list_command, name="list")
    app.command(describe)
    return app


def list_command(
    *,
    internal: Annotated[bool, flag("also Kafka's own, such as __consumer_offsets")] = False,
    rate: Rate = None,
    json: Json = False,
    connection: Connection = NO_CONNECTION,
) -> int:
    """List the topics that this client may see, with their partitions and records.

    RECORDS counts offsets between the beginning and the end of the logs: markers of transactions and compacted
    records are in it.
    """
    return asyncio.run(_list(connection.config(), internal, rate, json))


def describe(
    *topics: Annotated[str, Parameter(name="TOPIC", help="the topics")],
    rate: Rate = None,
    json: Json = False,
    connection: Connection = NO_CONNECTION,
) -> int:
    """Describe topics: leader, replicas, offsets and records of each partition, and the settings that differ."""
    return asyncio.run(_describe(connection.config(), topics, rate, json))


@attrs.frozen
class LogSizes:
    """Where the logs begin and end, and how many records a second they got, if that was measured."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    rates: Mapping[TopicPartition, float] | None = None

    def records(self, tp: TopicPartition) -> int | None:
        """Return the number of offsets in a log, None where no leader could be asked."""
        return self.ends[tp] - self.starts[tp] if tp in self.starts and tp in self.ends else None

    def rate(self, tp: TopicPartition) -> float | None:
        """Return the records a second, None if unknown."""
        return None if self.rates is None else self.rates.get(tp)


async def measure(
    client: AdminClient, topics: Sequence[MetadataResponseTopic], interval: float | None
) -> LogSizes:
    """Measure the logs of topics, twice with `interval` seconds between them if there is one."""
    starts = await client.offsets_of_topics(topics, EARLIEST_TIMESTAMP)
    ends = await client.offsets_of_topics(topics, LATEST_TIMESTAMP)
    if interval is None:
        return LogSizes(starts, ends)
    began = client.runtime.now()
    await asyncio.sleep(interval)
    later = await client.offsets_of_topics(topics, LATEST_TIMESTAMP)
    took = client.runtime.now() - began
    return LogSizes(
        starts, later, {tp: max(0, later[tp] - at) / took for tp, at in ends.items() if tp in later}
    )


async def _list(config: Config, internal: bool, interval: float | None, json: bool) -> int:
    async with AdminClient(config, Runtime()) as client:
        found = (await client.metadata()).topics
        topics = sorted(
            (one for one in found if internal or not one.is_internal), key=lambda topic: topic.name or ""
        )
        sizes = await measure(client, topics, interval)
    entries = [_summary(one, sizes) for one in topics]
    if json:
        sys.stdout.writelines(f"{json_form.dumps(entry)}\n" for entry in entries)
        return OK
    titles = ["TOPIC", "PARTITIONS", "REPLICAS", "RECORDS", *(["RECORDS/S"] if interval else []), "NOTE"]
    rows = [
        [
            entry["topic"],
            str(entry["partitions"]),
            str(entry["replicas"]),
            _shown(entry["records"]),
            *([_shown_rate(entry["records_per_second"])] if interval else []),
            entry["note"],
        ]
        for entry in entries
    ]
    sys.stdout.writelines(f"{line}\n" for line in table(titles, rows, right=titles[1:-1]))
    return OK


def _summary(topic: MetadataResponseTopic, sizes: LogSizes) -> dict[str, Any]:
    """Return one line of `list --json`; keys are only ever added to it."""
    name = topic.name or ""
    partitions = [TopicPartition(name, row.partition_index) for row in topic.partitions]
    counts = [count for tp in partitions if (count := sizes.records(tp)) is not None]
    rates = [rate for tp in partitions if (rate := sizes.rate(tp)) is not None]
    return {
        "topic": name,
        "internal": topic.is_internal,
        "partitions": len(partitions),
        "replicas": max((len(row.replica_nodes) for row in topic.partitions), default=0),
        "records": sum(counts) if counts else None,
        "records_per_second": sum(rates) if rates else None,
        "note": _note(topic),
    }


def _note(topic: MetadataResponseTopic) -> str:
    if topic.error_code:
        return codes.error(topic.error_code).name
    without = sum(row.leader_id < 0 for row in topic.partitions)
    behind = sum(len(row.isr_nodes) < len(row.replica_nodes) for row in topic.partitions)
    notes = [f"{without} without a leader"] if without else []
    return ", ".join([*notes, *([f"{behind} under-replicated"] if behind else [])])


async def _describe(config: Config, names: Sequence[str], interval: float | None, json: bool) -> int:
    async with AdminClient(config, Runtime()) as client:
        topics = (await client.metadata(names)).topics
        sizes = await measure(client, topics, interval)
        settings = [await _settings(client, topic.name or "") for topic in topics]
    for number, (topic, configs) in enumerate(zip(topics, settings, strict=True)):
        rows = [
            _row(topic.name or "", row, sizes)
            for row in sorted(topic.partitions, key=lambda one: one.partition_index)
        ]
        if json:
            more = {
                "topic_id": base64.urlsafe_b64encode(topic.topic_id).rstrip(b"=").decode(),
                "settings": configs,
                "partition_list": rows,
            }
            sys.stdout.write(json_form.dumps(_summary(topic, sizes) | more) + "\n")
            continue
        sys.stdout.write("\n" * bool(number))
        sys.stdout.writelines(
            f"{line}\n" for line in _text(topic, configs, rows, with_rate=interval is not None)
        )
    return OK


async def _settings(client: AdminClient, topic: str) -> dict[str, str | None] | None:
    """Return the settings that were made for this topic, None where the client may not see them."""
    try:
        found = await client.topic_configs(topic)
    except (AuthorizationError, VersionError, BrokerError):
        return None
    return {
        one.name: one.value
        for one in found.configs
        if one.config_source == SET_ON_TOPIC or (one.config_source < 0 and not one.is_default)
    }


def _row(topic: str, row: MetadataResponsePartition, sizes: LogSizes) -> dict[str, Any]:
    tp = TopicPartition(topic, row.partition_index)
    return {
        "partition": row.partition_index,
        "leader": row.leader_id if row.leader_id >= 0 else None,
        "replicas": list(row.replica_nodes),
        "in_sync_replicas": list(row.isr_nodes),
        "log_start": sizes.starts.get(tp),
        "end": sizes.ends.get(tp),
        "records": sizes.records(tp),
        "records_per_second": sizes.rate(tp),
    }


def _text(
    topic: MetadataResponseTopic,
    configs: Mapping[str, str | None] | None,
    rows: Sequence[Mapping[str, Any]],
    *,
    with_rate: bool,
) -> list[str]:
    note = _note(topic)
    head = f"topic {printable(topic.name or '')}  partitions {len(rows)}" + (f"  {note}" if note else "")
    titles = [
        "PARTITION",
        "LEADER",
        "REPLICAS",
        "IN SYNC",
        "BEGIN",
        "END",
        "RECORDS",
        *(["RECORDS/S"] if with_rate else []),
    ]
    cells = [
        [
            str(row["partition"]),
            NOTHING if row["leader"] is None else str(row["leader"]),
            ",".join(map(str, row["replicas"])) or NOTHING,
            ",".join(map(str, row["in_sync_replicas"])) or NOTHING,
            *(_shown(row[key]) for key in ("log_start", "end", "records")),
            *([_shown_rate(row["records_per_second"])] if with_rate else []),
        ]
        for row in rows
    ]
    if configs is None:
        settings = ["settings: not to be seen; they need DESCRIBE_CONFIGS on the topic"]
    else:
        settings = [
            f"setting {printable(key)}={printable(value or '')}" for key, value in sorted(configs.items())
        ]
    return [
        head,
        *settings,
        *table(titles, cells, right=[one for one in titles if one not in ("REPLICAS", "IN SYNC")]),
    ]


def _shown(number: int | None) -> str:
    return NOTHING if number is None else f"{number:,}"


def _shown_rate(rate: float | None) -> str:
    return NOTHING if rate is None else f"{rate:,.1f}"
