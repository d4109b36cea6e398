"""Have Kafka 4.4.0 write the vectors of what it brought: `python -m tools.record_java_vectors`.

Puts them into the files of tests/vectors/data, in the place of what stands there of the same messages and versions.
What Kafka 4 no longer speaks is written by 3.9.1. Needs a JDK and the jars of both, which it fetches as the tests do.
The same seed gives the same bytes.
"""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from localkafka.jars import classpath

SEED: Final = "44"
SOURCE: Final = Path(__file__).parent / "java" / "Vectors.java"
DATA: Final = Path(__file__).parents[1] / "tests" / "vectors" / "data"
TIMEOUT_SECONDS: Final = 120

CLIENTS: Final = "org.apache.kafka.common.message."
COORDINATOR: Final = "org.apache.kafka.coordinator."
OLDER: Final = {
    CLIENTS + "DescribeLogDirsRequestData": range(1),
    CLIENTS + "DescribeLogDirsResponseData": range(1),
}
NEWEST: Final = {
    CLIENTS + "ApiVersionsRequestData": range(5, 6),
    CLIENTS + "ApiVersionsResponseData": range(5, 6),
    CLIENTS + "DeleteGroupsRequestData": range(3, 4),
    CLIENTS + "DeleteGroupsResponseData": range(3, 4),
    CLIENTS + "TxnOffsetCommitRequestData": range(3, 7),  # a field has another name than in 4.3
    CLIENTS + "TxnOffsetCommitResponseData": range(6, 7),
    COORDINATOR + "group.generated.StreamsGroupMetadataValue": range(1),
    COORDINATOR + "transaction.generated.TransactionLogKey": range(1),
    COORDINATOR + "transaction.generated.TransactionLogValue": range(2),
    CLIENTS + "DescribeLogDirsRequestData": range(1, 6),  # at the end: a class changes what follows it
    CLIENTS + "DescribeLogDirsResponseData": range(1, 6),
}
WRITTEN: Final = {"3.9.1": OLDER, "4.4.0": NEWEST}
"""Release → class → the versions that it writes; a later release replaces what an earlier one has written."""
GONE: Final = {("TxnOffsetCommitRequest", "generationId")}  # names of fields that 4.4 does not have

Line = dict[str, Any]


def written(kafka: str) -> dict[str, list[Line]]:
    """Return the output of one release by file."""
    asked = [f"{kind}:{version}" for kind, versions in WRITTEN[kafka].items() for version in versions]
    asked += [f"{kind}:absent" for kind in WRITTEN[kafka] if kind.startswith(CLIENTS)]
    command = ["java", f"-Dkafka={kafka}", "-cp", classpath(kafka), str(SOURCE), SEED, *asked]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=True)
    found: dict[str, list[Line]] = {}
    for text in dict.fromkeys(run.stdout.splitlines()):
        line = json.loads(text)
        found.setdefault(line.pop("file"), []).append(line)
    return found


def merge(name: str, fresh: list[Line], key: Callable[[Line], object]) -> None:
    """Replace the lines with the same keys in a file, and keep each message's lines together, by version."""
    path = DATA / f"{name}.jsonl.gz"
    with gzip.open(path, "rt", encoding="ascii") as lines:
        old = [json.loads(line) for line in lines]
    replaced = {key(line) for line in fresh}
    kept = [
        line for line in old if key(line) not in replaced and (line["message"], line.get("field")) not in GONE
    ]
    order = {
        message: at for at, message in enumerate(dict.fromkeys(line["message"] for line in kept + fresh))
    }
    both = sorted(kept + fresh, key=lambda line: (order[line["message"]], line["version"]))
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in both)
    path.write_bytes(gzip.compress(text.encode("ascii"), mtime=0))
    print(f"{name}: {len(old)} lines before, {len(both)} now")


def main() -> None:
    """Write the files."""
    for kafka in WRITTEN:
        fresh = written(kafka)
        for name in ("messages", "frames"):
            merge(name, fresh[name], lambda line: (line["message"], line["version"]))
        merge(
            "absent_fields",
            fresh["absent_fields"],
            lambda line: (line["message"], line["version"], line["field"]),
        )


if __name__ == "__main__":
    main()
