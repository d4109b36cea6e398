"""Checkpoints of a Delta log in the forms that Spark writes and delta-rs only reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from kclient.spark.sink.delta import DeltaSink

UNIQUE = "73efad9d-6090-4f36-bdc1-a5b6a3245778"
V2 = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["v2Checkpoint"],
    "writerFeatures": ["appendOnly", "invariants", "v2Checkpoint"],
}
_ADDED = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", pa.map_(pa.string(), pa.string())),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
    ]
)


def log_of(sink: DeltaSink) -> Path:
    """The directory of the log."""
    return Path(sink.url) / "_delta_log"


def forget_before(sink: DeltaSink, version: int) -> None:
    """Delete the entries of the log before a version, as log clean-up does."""
    for entry in log_of(sink).glob("0*.json"):
        if re.fullmatch(r"[0-9]{20}", entry.stem) and int(entry.stem) < version:
            entry.unlink()


def checkpoint_in_parts(sink: DeltaSink, *kept: int, parts: int = 2) -> list[Path]:
    """Write a checkpoint of the newest version in parts, and keep some of them, by their number from 1."""
    table = DeltaTable(sink.url)
    table.create_checkpoint()
    whole = log_of(sink) / f"{table.version():020d}.checkpoint.parquet"
    rows, names = pq.read_table(whole), list[Path]()
    for part in kept or range(1, parts + 1):
        name = whole.with_name(f"{whole.stem}.{part:010d}.{parts:010d}.parquet")
        first = len(rows) * (part - 1) // parts
        pq.write_table(rows.slice(first, len(rows) * part // parts - first), name)
        names.append(name)
    whole.unlink()
    (log_of(sink) / "_last_checkpoint").unlink()
    return names


def checkpoint_of_version_2(sink: DeltaSink) -> None:
    """Let the table have the checkpoints of version 2, with one that keeps its files in a sidecar."""
    kept, version = _kept(sink), DeltaTable(sink.url).version() + 1
    upgrade = [{"protocol": V2}, kept["metaData"][0]]
    (log_of(sink) / f"{version:020d}.json").write_text(_lines(upgrade))
    sidecar = log_of(sink) / "_sidecars" / f"{UNIQUE}.parquet"
    sidecar.parent.mkdir()
    added = [
        {**line["add"], "partitionValues": [*line["add"]["partitionValues"].items()]} for line in kept["add"]
    ]
    pq.write_table(pa.table({"add": pa.array(added, _ADDED)}), sidecar)
    named = {"path": sidecar.name, "sizeInBytes": sidecar.stat().st_size, "modificationTime": 0, "tags": {}}
    manifest = [{"checkpointMetadata": {"version": version}}, *upgrade, *kept["txn"], {"sidecar": named}]
    (log_of(sink) / f"{version:020d}.checkpoint.{UNIQUE}.json").write_text(_lines(manifest))


def _kept(sink: DeltaSink) -> dict[str, list[dict[str, Any]]]:
    """The actions of the log that hold still, by their names."""
    found: dict[str, dict[str, dict[str, Any]]] = {"txn": {}, "add": {}, "metaData": {}}
    for entry in sorted(log_of(sink).glob("0*.json")):
        for line in map(json.loads, entry.read_text().splitlines()):
            [(name, action)] = line.items()
            if name in found:
                found[name][action.get("appId") or action.get("path") or ""] = line
    return {name: list(lines.values()) for name, lines in found.items()}


def _lines(actions: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(action)}\n" for action in actions)
