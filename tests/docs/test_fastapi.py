"""docs/how-to/fastapi.md: its service runs under uvicorn, answers, and commits what it has handled on SIGTERM."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kclient.embedded import EmbeddedCluster
from tests.docs.blocks import python_blocks

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "fastapi.md").read_text()
PATIENCE = 30.0
ORDERS = [{"who": who, "amount": amount} for who, amount in (("ann", 30), ("bob", 12), ("ann", 7))]


@pytest.fixture
def kafka() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, topics={"orders": 1}) as cluster:
        cluster.produce("orders", [(order["who"], json.dumps(order)) for order in ORDERS])
        yield cluster


@pytest.fixture
def service(kafka: EmbeddedCluster, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """uvicorn with the application of the page, on a port that it chooses."""
    [block] = python_blocks(PAGE)
    (tmp_path / "app.py").write_text(block)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "app:app", "--port", "0"],
        cwd=tmp_path,
        env={**os.environ, "KAFKA": kafka.bootstrap_servers, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.wait()
    assert process.stderr is not None
    process.stderr.close()


def address(process: subprocess.Popen[str]) -> str:
    """Where it listens, once it says so."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"running on (http://\S+)", line):
            return found[1]
    raise AssertionError("it ended before it listened")


def until_handled(client: httpx.Client, count: int) -> None:
    end = time.monotonic() + PATIENCE
    while client.get("/health").json() != {"handled": count}:
        assert time.monotonic() < end, client.get("/health").text
        time.sleep(0.05)


def test_it_answers_and_a_sigterm_commits_what_it_has_handled(
    kafka: EmbeddedCluster, service: subprocess.Popen[str]
) -> None:
    with httpx.Client(base_url=address(service), trust_env=False) as client:
        until_handled(client, 3)
        assert client.get("/bills/ann").json() == {"amount": 37}
        assert (
            'kafka_consumer_fetch_manager_records_consumed_total{client_id="' in client.get("/metrics").text
        )
    service.send_signal(signal.SIGTERM)
    _, rest = service.communicate(timeout=PATIENCE)
    assert "Application shutdown complete" in rest
    assert "Traceback" not in rest
    assert list(kafka.committed("billing").values()) == [3]


def test_a_record_that_cannot_be_handled_shows_in_the_health_check(
    kafka: EmbeddedCluster, service: subprocess.Popen[str]
) -> None:
    with httpx.Client(base_url=address(service), trust_env=False) as client:
        until_handled(client, 3)
        kafka.produce("orders", ["no JSON"])
        end = time.monotonic() + PATIENCE
        while (response := client.get("/health")).status_code == 200 and time.monotonic() < end:
            time.sleep(0.1)
    assert response.status_code == 503
    assert "JSONDecodeError for orders-0 offset 3" in response.json()["detail"]
    service.send_signal(signal.SIGTERM)
    service.communicate(timeout=PATIENCE)
    assert list(kafka.committed("billing").values()) == [3]
