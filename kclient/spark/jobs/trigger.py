"""When a query's batches begin, in Spark's own words, and where it keeps its checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kclient.spark.jobs.prepared import Prepared

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def triggered(writer: DataStreamWriter, prepared: Prepared) -> DataStreamWriter:
    """The query with the trigger and the checkpoint of the job."""
    trigger = prepared.settings.trigger
    if trigger.kind == "availableNow":
        writer = writer.trigger(availableNow=True)
    elif trigger.kind == "once":
        writer = writer.trigger(once=True)
    else:
        writer = writer.trigger(processingTime=f"{trigger.interval_ms} milliseconds")
    return writer.option("checkpointLocation", str(prepared.checkpoint.path))
