"""`--schema infer`: the first records of each topic tell Spark which fields there are; what it finds is frozen.

    the next records of every partition → schema_of_variant_agg → DDL → beside the checkpoint

With `--evolve add-columns` every run looks again, and only adds to what is frozen.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final

import attrs

from kclient.errors import ConfigError
from kclient.spark.jobs import schemas
from kclient.spark.jobs.prepared import Prepared, with_settings
from kclient.spark.jobs.settings import INFER, IngestSettings
from kclient.spark.jobs.spark_failure import typed
from kclient.spark.offsets import dump_offsets
from kclient.spark.source import KClientSource
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLE: Final = 10_000
"""Records of each topic that are looked at."""


def with_schema(prepared: Prepared, session: SparkSession) -> Prepared:
    """The job with a schema, found now where it is to be found. Raises ConfigError where records tell none."""
    if prepared.settings.schema != INFER:
        return prepared
    frozen = prepared.checkpoint.schema()
    found = _found(prepared, session)
    if frozen is None and found is None:
        raise ConfigError(
            "--schema infer found no JSON objects in the records that are next: there are none yet, or they are of "
            "another form. Start again when there are some, or give the schema itself."
        )
    ddl = frozen if found is None else schemas.widened(frozen, found)
    settings = attrs.evolve(prepared.settings, schema=ddl)
    changed = with_settings(prepared, settings)
    schemas.freeze(prepared.checkpoint, str(ddl), prepared.position.batch)
    return changed


def _found(prepared: Prepared, session: SparkSession) -> str | None:
    start, end = sample_of(prepared)
    if not start:
        return None
    assigned: dict[str, list[int]] = {}
    for topic, partition in start:
        assigned.setdefault(topic, []).append(partition)
    options = {
        **_connection(prepared.settings),
        "assign": json.dumps(assigned),
        "startingOffsets": dump_offsets(start),
        "endingOffsets": dump_offsets(end),
        "failOnDataLoss": "false",
    }
    session.dataSource.register(KClientSource)
    frame = session.read.format(KClientSource.name()).options(**options).schema("value binary").load()
    try:
        [row] = frame.selectExpr(
            "schema_of_variant_agg(try_parse_json(cast(value AS STRING))) AS found"
        ).collect()
    except Exception as exc:
        raise typed(exc) from exc
    return schemas.of_variants(row["found"])


def sample_of(prepared: Prepared) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """The records that are looked at: the next ones of each partition, as many of each topic."""
    waiting = [part for part in prepared.plan.partitions if part.backlog]
    of_topic = Counter(part.partition.topic for part in waiting)
    start = {part.partition: part.start for part in waiting}
    end = {
        part.partition: min(part.end, part.start + -(-SAMPLE // of_topic[part.partition.topic]))
        for part in waiting
    }
    return start, end


def _connection(settings: IngestSettings) -> dict[str, str]:
    """How the cluster is reached: the same for a sample as for the job."""
    given = settings.stream_options()
    return {name: text for name, text in given.items() if name.lower().startswith("kafka.")}
