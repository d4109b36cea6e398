"""The command line of the ingest job, and the paths of its files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs

from localspark import JAVA_OPTIONS

SPARK: Final = "spark"
ENGINES: Final = (SPARK, "direct")
SINKS: Final = ("parquet", "iceberg", "delta")
BUCKET: Final = "lake"
BATCHES: Final = 12
SCHEMA_FILE: Final = "flights.ddl"
TRIGGER: Final = "1s"
# A choice of the columns that the answer and its readers use: the others are left out.
SCHEMA: Final = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int, "
    "arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, air_time int, distance int"
)
CONF: Final = (
    "spark.ui.enabled=false",
    "spark.driver.host=127.0.0.1",
    "spark.driver.bindAddress=127.0.0.1",
    "spark.driver.memory=1g",
    f"spark.driver.extraJavaOptions={JAVA_OPTIONS}",
)


@attrs.frozen
class Job:
    """The settings of the job, and the paths of its files."""

    servers: str
    topic: str
    group: str
    out: Path
    total: int
    engine: str = SPARK
    kind: str = "parquet"
    endpoint: str | None = None

    @property
    def sink(self) -> Path:
        return self.out / "flights"

    @property
    def checkpoint(self) -> Path:
        return self.out / "checkpoint"

    def arguments(self, metrics: Path) -> list[str]:
        """Return the arguments of `python -m kclient`."""
        schema = self.out / SCHEMA_FILE
        schema.write_text(SCHEMA, encoding="utf-8")
        return [
            *("ingest", "--bootstrap", self.servers, "--topics", self.topic, "--group", self.group),
            *self.into(),
            *("--checkpoint", str(self.checkpoint)),
            *("--format", "json", "--schema", str(schema), "--engine", self.engine),
            *("--on-new-field", "ignore"),
            *("--trigger", TRIGGER, "--max-per-trigger", str(max(1, -(-self.total // BATCHES)))),
            *("--metrics", f"jsonl:{metrics}"),
            *(self._spark() if self.engine == SPARK else ()),
        ]

    def into(self) -> list[str]:
        """Return the arguments that name the sink; the catalog of an Iceberg table is written beside."""
        if self.kind == "parquet":
            return ["--sink", f"parquet:{self.sink}"]
        if self.kind == "delta":
            return ["--sink", f"delta:{self.place}"]
        catalog = self.out / "catalog.yaml"
        lines = [f"    {name}: {value}\n" for name, value in self.properties.items()]
        catalog.write_text("catalog:\n  demo:\n" + "".join(lines), encoding="utf-8")
        return ["--sink", "iceberg:demo.db.flights", "--catalog", str(catalog)]

    @property
    def counted_by(self) -> str:
        """What says which rows count."""
        return "the manifest" if self.kind == "parquet" else "the table"

    @property
    def place(self) -> str:
        """Where a table and its files are: on S3 if there is one, else beside the report."""
        return str(self.sink.absolute()) if self.endpoint is None else f"s3://{BUCKET}/flights"

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the catalog."""
        remote = {} if self.endpoint is None else {"s3.endpoint": self.endpoint, "s3.region": "us-east-1"}
        scheme = "file://" if self.endpoint is None else ""
        uri = f"sqlite:///{(self.out / 'catalog.db').absolute()}"
        return {"type": "sql", "uri": uri, "warehouse": scheme + self.place, **remote}

    def _spark(self) -> list[str]:
        return ["--master", "local[2,4]", *(part for setting in CONF for part in ("--conf", setting))]
