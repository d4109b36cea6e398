"""`--sink table:CATALOG.DATABASE.NAME`: whether Spark knows the catalog and has the JAR of its table format.

Neither is part of pyspark. A JAR must be made for the minor release of Spark that runs, so what is missing is told with
the settings that bring it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kclient.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARKS_OWN: Final = "spark_catalog"
CATALOG: Final = "spark.sql.catalog."
HOW: Final = (
    "For Iceberg: --conf spark.jars.packages=org.apache.iceberg:iceberg-spark-runtime-{release}_2.13:VERSION "
    "--conf spark.sql.catalog.{name}=org.apache.iceberg.spark.SparkCatalog, with its type and place. For Delta, whose "
    "catalog is spark_catalog: --conf spark.jars.packages=io.delta:delta-spark_{release}_2.13:VERSION "
    "--conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension "
    "--conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog "
    "--conf spark.sql.catalogImplementation=hive."
)


def check_catalog(session: SparkSession, table: str) -> None:
    """Raises ConfigError, which says what JAR is missing and how it gets there."""
    name = table.partition(".")[0]
    kind = _class_of(session, name)
    if kind is None and name != SPARKS_OWN:
        raise ConfigError(f"--sink table:{table}: this Spark has no catalog {name}. {_how(session, name)}")
    try:
        session.sql(f"SHOW NAMESPACES IN `{name}`").collect()
    except Exception as exc:  # pyspark does not translate this one
        if "CANNOT_LOAD_CATALOG" not in str(exc) and "Cannot find catalog plugin class" not in str(exc):
            raise
        raise ConfigError(
            f"--sink table:{table}: the catalog {name} is {kind}, and no JAR of this Spark has that class. "
            + _how(session, name)
        ) from exc


def provider_of(session: SparkSession, table: str) -> str:
    """The format of a table that is made when it is not there: that of its catalog."""
    kind = (_class_of(session, table.partition(".")[0]) or "").lower()
    return next((name for name in ("iceberg", "delta") if name in kind), "parquet")


def _class_of(session: SparkSession, name: str) -> str | None:
    return session.conf.get(f"{CATALOG}{name}", None)


def _how(session: SparkSession, name: str) -> str:
    return HOW.format(release=".".join(session.version.split(".")[:2]), name=name)
