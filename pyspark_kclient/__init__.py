"""Spark looks for packages named `pyspark_…` and registers their `DefaultSource`: so `format("kclient")` is known."""

from __future__ import annotations

from kclient.spark.source import KClientSource


class DefaultSource(KClientSource):
    """The source under the name by which Spark looks for it. Spec: SP-34."""
