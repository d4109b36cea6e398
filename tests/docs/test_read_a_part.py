"""docs/how-to/read-a-part.md: the commands of its last section run, on the cluster of a test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kclient import Consumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.group import lag

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "read-a-part.md").read_text()
COMMANDS = [
    line for block in re.findall(r"(?s)^```sh\n(.*?)^```$", PAGE, re.MULTILINE) for line in block.splitlines()
]


def test_the_commands_read_a_part(tmp_path: Path) -> None:
    yesterday = datetime.now(UTC) - timedelta(days=1)
    with EmbeddedCluster(brokers=1, topics={"orders": 2}) as kafka:
        written = int(yesterday.timestamp() * 1000)
        kafka.produce("orders", [("eve", "long ago")], partition=0, timestamp_ms=written)
        kafka.produce("orders", [("ann", "30"), ("bob", "12"), ("ann", "7")] * 400, partition=0)
        with Consumer(bootstrap_servers=kafka.bootstrap_servers, group_id="billing") as consumer:
            consumer.commit({TopicPartition("orders", 0): 900})
        replaced = {
            "localhost:9092": kafka.bootstrap_servers,
            "2026-11-20T14:00Z": f"{yesterday - timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}",
            "2026-11-20T15:00Z": f"{yesterday + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}",
        }
        (tmp_path / "kclient").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kclient "$@"\n')
        (tmp_path / "kclient").chmod(0o755)
        path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
        outputs = []
        for line in COMMANDS:
            command = line
            for shown, ours in replaced.items():
                command = command.replace(shown, ours)
            done = subprocess.run(
                command,
                shell=True,
                cwd=tmp_path,
                env={**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)},
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, (command, done.stderr)
            outputs.append(done.stdout)
        assert len(outputs[0].splitlines()) == len(outputs[1].splitlines()) == 1_000
        assert outputs[2].split() == ["800", "ann", "400", "bob"]
        assert [json.loads(line)["key"] for line in (tmp_path / "hour.jsonl").read_text().splitlines()] == [
            "eve"
        ]
        assert outputs[4] == outputs[5]  # the plan, and what was done
        assert lag("billing", bootstrap_servers=kafka.bootstrap_servers).total == 1_200
