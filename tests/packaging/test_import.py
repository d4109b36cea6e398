"""Importing kclient and its classes is cheap: no optional dependency, no codec, no part of a consumer."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from importlib import metadata

import pytest

import kclient

LIMIT_SECONDS = 0.150
CLASSES = ("Consumer", "AsyncConsumer")
PARTS = (
    "config",
    "fetch",
    "generated",
    "group",
    "metrics",
    "network",
    "positions",
    "protocol",
    "records",
    "security",
)
MOST_MODULES = 25
ROUNDS = 7

LOADED = """
import json, sys
import kclient
print(json.dumps(sorted(sys.modules)))
"""
CALLS = """
from contextlib import suppress
from kclient import Consumer, TopicPartition
from kclient.errors import KclientError
with suppress(KclientError), Consumer(bootstrap_servers="localhost:1") as consumer:
    tp = TopicPartition("orders", 0)
    consumer.assign([tp])
    consumer.seek(tp, 5)
    consumer.seek_to_beginning()
    consumer.pause([tp])
    consumer.explain(ask=False)
    consumer.metrics()
    with suppress(KclientError):
        consumer.end_offsets([tp], timeout=0.1)
    with suppress(KclientError):
        consumer.poll(0)
    consumer.unsubscribe()
"""
NOT_AT_IMPORT = {"pyarrow", "pyspark", "jinja2", "numpy", "pandas", "rich", "http.client", "urllib.request"}
NOT_AT_IMPORT |= {"importlib.metadata"}


def seconds(code: str) -> float:
    """Wall time of a fresh interpreter that runs one line."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def after(code: str) -> set[str]:
    """The modules that are loaded after the code has run in a fresh interpreter."""
    script = f"import sys\n{code}\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def cpu_seconds(code: str) -> float:
    """CPU that the code takes in a fresh interpreter."""
    script = f"import time; began = time.process_time()\n{code}\nprint(time.process_time() - began)"
    return float(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout)


def test_importing_kclient_takes_150_ms_at_most() -> None:
    seconds("import kclient")  # writes the bytecode caches
    rounds = [(seconds("import kclient"), seconds("pass")) for _ in range(ROUNDS)]
    # The best of each: a busy machine can only add time.
    cost = min(with_import for with_import, _ in rounds) - min(bare for _, bare in rounds)
    assert cost <= LIMIT_SECONDS, rounds


def test_importing_kclient_loads_no_codec_and_no_extra() -> None:
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    loaded = set(json.loads(run.stdout))
    assert not loaded & NOT_AT_IMPORT
    codecs = [name for name in loaded if name.startswith("kclient.generated.")]
    assert not [name for name in codecs if name.endswith(("_request", "_response"))]


@pytest.mark.parametrize("name", CLASSES)
def test_importing_a_class_loads_no_part_of_a_consumer(name: str) -> None:
    loaded = after(f"from kclient import {name}")
    ours = {module for module in loaded if module.split(".")[0] == "kclient"}
    assert not {module for module in ours if module.split(".")[1:2] and module.split(".")[1] in PARTS}
    assert "kclient.consumer.core" not in ours
    assert len(ours) <= MOST_MODULES, ours
    assert not loaded & (NOT_AT_IMPORT | {"json", "pathlib", "tempfile"})


def test_the_first_consumer_loads_all_that_later_calls_need() -> None:
    """No call on an event loop reads modules from a disk, messages apart."""
    made = after("from kclient import Consumer; consumer = Consumer(bootstrap_servers='localhost:1')")
    called = after(CALLS)
    assert "kclient.consumer.core" in made
    assert not {name for name in called - made if name.startswith("kclient.")}


def test_importing_a_class_costs_little_more_than_asyncio_and_attrs() -> None:
    ours, theirs = f"from kclient import {CLASSES[0]}", "import asyncio, attrs"
    rounds: list[tuple[float, float]] = []
    # The best of each: a busy machine can only add time. Importing every part at once costs 4 times as much.
    while len(rounds) < 3 * ROUNDS and not (rounds and cheap_enough(rounds)):
        rounds.append((cpu_seconds(ours), cpu_seconds(theirs)))
    assert cheap_enough(rounds), rounds


def cheap_enough(rounds: list[tuple[float, float]]) -> bool:
    return min(one for one, _ in rounds) <= 2.2 * min(other for _, other in rounds)


def test_the_version_is_that_of_the_installed_package() -> None:
    assert kclient.__version__ == metadata.version("kclient-kafka")
