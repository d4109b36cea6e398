"""The command line of the ingest job, and the paths of its files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs

from localspark import JAVA_OPTIONS

SPARK: Final = "spark"
ENGINES: Final = (SPARK, "direct")
BATCHES: Final = 12
SCHEMA_FILE: Final = "flights.ddl"
TRIGGER: Final = "1s"
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
            *("--sink", f"parquet:{self.sink}", "--checkpoint", str(self.checkpoint)),
            *("--format", "json", "--schema", str(schema), "--engine", self.engine),
            *("--trigger", TRIGGER, "--max-per-trigger", str(max(1, -(-self.total // BATCHES)))),
            *("--metrics", f"jsonl:{metrics}"),
            *(self._spark() if self.engine == SPARK else ()),
        ]

    def _spark(self) -> list[str]:
        return ["--master", "local[2,4]", *(part for setting in CONF for part in ("--conf", setting))]
