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
HIDDEN_SIZES: Final = ["bytes: not to be seen; they need DESCRIBE on the cluster, and Kafka 1.0"]
NUMBERS: Final = ("records", "records_per_second", "bytes", "bytes_per_second")
Json = Annotated[bool, flag("one JSON object on a line for each topic")]
Rate = Annotated[
    float | None,
    option(
        "look twice with this time between, and show records and bytes per second", "5s", converter=seconds
    ),
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
    records are in it. BYTES is what the leaders' logs take, without the other replicas.
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
    """How large logs are: numbers for each partition, without those whose leader could not be asked.

    `bytes` are those of the leader's replica, None if this client may not see them. The rates, for a second, are empty
    unless they were measured.
    """

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    bytes: Mapping[TopicPartition, int] | None
    record_rates: Mapping[TopicPartition, float] = attrs.field(factory=dict)
    byte_rates: Mapping[TopicPartition, float] = attrs.field(factory=dict)

    def of(self, tp: TopicPartition) -> dict[str, Any]:
        """Return the numbers of one partition as `--json` has them, None for what is unknown."""
        known = tp in self.starts and tp in self.ends
        return {
            "records": self.ends[tp] - self.starts[tp] if known else None,
            "records_per_second": self.record_rates.get(tp),
            "bytes": None if self.bytes is None else self.bytes.get(tp),
            "bytes_per_second": self.byte_rates.get(tp),
        }

    def sums(self, partitions: Sequence[TopicPartition]) -> dict[str, Any]:
        """Return the sums of the numbers that are known, None where none is."""
        rows = [self.of(tp) for tp in partitions]
        known = {key: [row[key] for row in rows if row[key] is not None] for key in NUMBERS}
        return {key: sum(found) if found else None for key, found in known.items()}


async def measure(
    client: AdminClient, topics: Sequence[MetadataResponseTopic], interval: float | None
) -> LogSizes:
    """Measure the logs of topics, twice with `interval` seconds between them if there is one."""
    starts = await client.offsets_of_topics(topics, EARLIEST_TIMESTAMP)
    ends, sizes = await _measure_once(client, topics)
    if interval is None:
        return LogSizes(starts, ends, sizes)
    began = client.runtime.now()
    await asyncio.sleep(interval)
    later, larger = await _measure_once(client, topics)
    took = client.runtime.now() - began
    return LogSizes(starts, later, larger, _rates(ends, later, took), _rates(sizes or {}, larger or {}, took))


async def _measure_once(
    client: AdminClient, topics: Sequence[MetadataResponseTopic]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int] | None]:
    ends = await client.offsets_of_topics(topics, LATEST_TIMESTAMP)
    return ends, await client.bytes_of_topics(topics)


def _rates(
    before: Mapping[TopicPartition, int], after: Mapping[TopicPartition, int], seconds: float
) -> dict[TopicPartition, float]:
    """Return how much was added in a second. What retention has removed meanwhile may hide it."""
    return {tp: max(0, after[tp] - at) / seconds for tp, at in before.items() if tp in after}


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
    titles = ["TOPIC", "PARTITIONS", "REPLICAS", *_number_titles(interval is not None), "NOTE"]
    rows = [
        [
            entry["topic"],
            str(entry["partitions"]),
            str(entry["replicas"]),
            *_number_cells(entry, with_rate=interval is not None),
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
    return {
        "topic": name,
        "internal": topic.is_internal,
        "partitions": len(partitions),
        "replicas": max((len(row.replica_nodes) for row in topic.partitions), default=0),
        **sizes.sums(partitions),
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
        hidden = HIDDEN_SIZES if sizes.bytes is None else []
        text = _text(topic, configs, hidden, rows, with_rate=interval is not None)
        sys.stdout.writelines(f"{line}\n" for line in text)
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
        **sizes.of(tp),
    }


def _text(
    topic: MetadataResponseTopic,
    configs: Mapping[str, str | None] | None,
    hidden: Sequence[str],
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
        *_number_titles(with_rate),
    ]
    cells = [
        [
            str(row["partition"]),
            NOTHING if row["leader"] is None else str(row["leader"]),
            ",".join(map(str, row["replicas"])) or NOTHING,
            ",".join(map(str, row["in_sync_replicas"])) or NOTHING,
            *(_shown(row[key]) for key in ("log_start", "end")),
            *_number_cells(row, with_rate=with_rate),
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
        *hidden,
        *table(titles, cells, right=[one for one in titles if one not in ("REPLICAS", "IN SYNC")]),
    ]


def _number_titles(with_rate: bool) -> list[str]:
    return ["RECORDS", "RECORDS/S", "BYTES", "BYTES/S"] if with_rate else ["RECORDS", "BYTES"]


def _number_cells(row: Mapping[str, Any], *, with_rate: bool) -> list[str]:
    """Return the cells below `_number_titles`."""
    records, record_rate, size, byte_rate = (row[key] for key in NUMBERS)
    if with_rate:
        return [_shown(records), _shown_rate(record_rate), _shown(size), _shown_rate(byte_rate)]
    return [_shown(records), _shown(size)]


def _shown(number: int | None) -> str:
    return NOTHING if number is None else f"{number:,}"


def _shown_rate(rate: float | None) -> str:
    return NOTHING if rate is None else f"{rate:,.1f}"
