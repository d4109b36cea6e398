"""What ended a query is an error of ours again, however deep Spark wrapped it."""

from __future__ import annotations

import pytest

from kclient.errors import DataLossError, DecodeError, SinkError
from kclient.spark.ingest.spark_session import typed

OURS = """[STREAM_FAILED] Query terminated with exception: Job aborted due to stage failure: Task 0 failed 4 times:
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/kclient/spark/direct.py", line 91, in write_batches
kclient.errors.DecodeError: orders-0 at offset 1: the value cannot be read as json: it is not JSON. Give the right
one.  [KC-651] kclient explain KC-651

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:645)"""


@pytest.mark.spec("SP-24", "SP-85")
def test_an_error_of_ours_keeps_its_class_and_text() -> None:
    found = typed(RuntimeError(OURS))
    assert type(found) is DecodeError
    assert str(found).startswith(
        "orders-0 at offset 1: the value cannot be read as json: it is not JSON. Give the right"
    )
    nested = OURS.replace("kclient.errors.DecodeError", "pyspark.errors.X: kclient.errors.DataLossError")
    assert type(typed(RuntimeError(nested))) is DataLossError


@pytest.mark.spec("SP-85")
@pytest.mark.parametrize(
    "text",
    [
        "java.io.IOException: No space left on device",
        "[TASK_WRITE_FAILED] Task failed while writing rows to file:/lake/raw. SQLSTATE: 58030",
        "org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: file:/lake",
        "java.io.FileNotFoundException: /lake/raw/x.parquet (Permission denied)",
    ],
)
def test_what_java_says_of_a_disk_is_an_error_of_the_sink(text: str) -> None:
    found = typed(RuntimeError(f"[STREAM_FAILED] Query terminated\n{text}\n\tat java.base/java.io"))
    assert type(found) is SinkError
    assert "nothing will count twice" in str(found)


def test_anything_else_stays_what_it_was() -> None:
    failure = RuntimeError("[STREAM_FAILED] out of memory")
    assert typed(failure) is failure
