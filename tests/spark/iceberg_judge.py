"""A Spark 4.0 with Iceberg that counts the rows of tables. It knows nothing of kclient.

Each request names the catalog `lake` by Iceberg's own properties, as it stands at that moment:

{"catalog": {"type": "jdbc", …}, "table": "db.orders", "snapshot": 3}      the table, now or as it was: see `lake_judge`
{"catalog": {…}, "sql": "SELECT … FROM lake.db.orders"}                    → its rows, as text
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from localspark import JAVA_OPTIONS
from localspark.jars import ICEBERG_SETTINGS
from localspark.serving import serve, start
from tests.spark.lake_judge import verdict

CATALOG = "spark.sql.catalog.lake"


def session(jars: str) -> SparkSession:
    return start(
        jars,
        spark__driver__extraJavaOptions=JAVA_OPTIONS,
        spark__sql__shuffle__partitions="2",
        **{name.replace(".", "__"): value for name, value in ICEBERG_SETTINGS.items()},
    )


def run(spark: SparkSession, asked: dict[str, Any]) -> Any:
    own = spark.newSession()  # a session keeps the catalogs that it has opened
    own.conf.set(CATALOG, "org.apache.iceberg.spark.SparkCatalog")
    own.conf.set(f"{CATALOG}.cache-enabled", "false")
    for name, value in asked["catalog"].items():
        own.conf.set(f"{CATALOG}.{name}", value)
    if "sql" in asked:
        return [[str(value) for value in row] for row in own.sql(asked["sql"]).collect()]
    version = f" VERSION AS OF {asked['snapshot']}" if "snapshot" in asked else ""
    return verdict(own.sql(f"SELECT * FROM lake.{asked['table']}{version}"), "_kafka_partition")


if __name__ == "__main__":
    serve(session, run)
