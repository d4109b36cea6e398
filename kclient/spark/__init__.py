"""Kafka as a PySpark data source, without a JAR: `spark.read.format("kclient")`.

Importing this package needs neither pyspark nor pyarrow; they are the extra `spark`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kclient.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make the format `kclient` known to a session.

    Spark finds it by itself through the package `pyspark_kclient`; this call is for when another package whose name
    begins with `pyspark_` is broken, which stops Spark's search. Raises ConfigError where pyspark lacks the Python Data
    Source API.

    Spec: SP-33, SP-34.
    """
    try:
        from kclient.spark.source import KClientSource
    except ImportError as error:
        raise ConfigError(
            "kclient.spark needs pyspark 4.0 or newer and pyarrow. One of them is missing or too old. "
            "Type: pip install 'kclient-kafka[spark]'."
        ) from error
    spark.dataSource.register(KClientSource)
