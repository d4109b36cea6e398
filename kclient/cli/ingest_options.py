"""The options of `kclient ingest` as a person gives them, and their help. What they may be, `IngestSettings` says.

Every option goes to `IngestSettings.parse` under its own name, so that all that is wrong is told at once.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import attrs
from cyclopts import Group

from kclient.cli.options import Connection, choice, flag, option, warn_of_arguments
from kclient.spark.ingest.settings import Codec, Engine, Format, IngestSettings, OnBadRecord, Writer

WHAT: Final = Group("What and where to (required)", sort_key=1)
READ: Final = Group("What is read", sort_key=2)
DECODE: Final = Group("How it is decoded", sort_key=3)
WRITE: Final = Group("How it is written", sort_key=4)
RUN: Final = Group("How it runs", sort_key=5)

Text = str | None


@attrs.frozen(kw_only=True)
class IngestOptions:
    """One job."""

    topics: Annotated[
        Text, option("topics and regular expressions for whole names", "orders,clicks.*", group=WHAT)
    ] = None
    sink: Annotated[
        Text, option("where the rows go", "parquet:DIR|table:CATALOG.DATABASE.NAME", group=WHAT)
    ] = None
    checkpoint: Annotated[
        Text,
        option("what the job keeps between runs; the same one goes on where it stopped", "DIR", group=WHAT),
    ] = None

    start: Annotated[
        Text,
        option(
            "where a new job begins: earliest, latest, group, a time, or offsets in a file",
            "START|@TIME|FILE",
            group=READ,
            show_default="earliest",
        ),
    ] = None
    group: Annotated[
        Text, option("commit progress to this consumer group, for tools that show lag", "NAME", group=READ)
    ] = None
    trigger: Annotated[
        Text,
        option(
            "when a batch begins: until all is drained, once without limits, or every so often for ever",
            "availableNow|once|10s",
            group=READ,
            show_default="availableNow",
        ),
    ] = None
    max_per_trigger: Annotated[Text, option("at most so many records a batch", "5e6", group=READ)] = None
    backfill: Annotated[
        bool,
        flag(
            "read from --start to --end once, into the same layout, beside the job's own batches",
            group=READ,
        ),
    ] = False
    end: Annotated[
        Text,
        option(
            "where a backfill ends",
            "latest|@TIME|FILE",
            group=READ,
            show_default="latest",
        ),
    ] = None
    from_dlq: Annotated[
        Text,
        option(
            "read dead letters instead of topics, and land what can be decoded now",
            "parquet:DIR",
            group=READ,
        ),
    ] = None
    fail_on_data_loss: Annotated[
        bool,
        flag(
            "end with 6 when records are gone that were still to be read",
            group=READ,
            negative="--accept-data-loss",
        ),
    ] = True

    format: Annotated[Text, choice("what the values are", Format, group=DECODE, show_default="raw")] = None
    schema: Annotated[
        Text,
        option(
            "the columns, as DDL or a schema of the format; registry:URL; or infer: found once in the records and kept",
            "FILE|TEXT|infer",
            group=DECODE,
        ),
    ] = None
    evolve: Annotated[
        Text,
        choice(
            "whether the schema of a job may grow",
            Literal["none", "add-columns"],
            group=DECODE,
            show_default="none",
        ),
    ] = None
    on_bad_record: Annotated[
        Text,
        choice(
            "what becomes of a value that cannot be decoded",
            OnBadRecord,
            group=DECODE,
            show_default="fail",
        ),
    ] = None
    dlq: Annotated[Text, option("where dead letters go", "parquet:DIR", group=DECODE)] = None

    partition_by: Annotated[
        Text, option("directories", "topic[,date(timestamp)]", group=WRITE, show_default="topic")
    ] = None
    codec: Annotated[Text, choice("compression of the files", Codec, group=WRITE, show_default="zstd")] = None
    target_file_mb: Annotated[Text, option("files of about this size", "MB", group=WRITE)] = None
    headers: Annotated[
        bool, flag("a column with the headers of the records", group=WRITE, negative="--no-headers")
    ] = True
    writer: Annotated[
        Text,
        choice(
            "the tasks themselves with a manifest, or Spark's own sink",
            Writer,
            group=WRITE,
            show_default="direct",
        ),
    ] = None

    engine: Annotated[
        Text, choice("Spark, or this process alone", Engine, group=RUN, show_default="spark")
    ] = None
    parallelism: Annotated[Text, option("about so many tasks a batch", "32", group=RUN)] = None
    master: Annotated[Text, option("Spark's master", "URL", group=RUN, show_default="local[*,4]")] = None
    conf: Annotated[
        tuple[str, ...] | None, option("one setting of Spark; again for more", "KEY=VALUE", group=RUN)
    ] = None
    options: Annotated[
        tuple[str, ...] | None,
        option(
            "one option of the source, as format('kclient') has them; again for more",
            "KEY=VALUE",
            group=RUN,
        ),
    ] = None

    def settings(self, connection: Connection) -> IngestSettings:
        """All of it checked. Raises ConfigError with every problem."""
        given: dict[str, Any] = attrs.asdict(self, recurse=False)
        servers, theirs = connection.source()
        warn_of_arguments("--options", (text.partition("=")[0] for text in self.options or ()))
        given["options"] = [*(f"{key}={value}" for key, value in theirs.items()), *(self.options or ())]
        return IngestSettings.parse({"bootstrap": servers, **given})
