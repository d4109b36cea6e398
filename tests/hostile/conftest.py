"""A log of hostile batches in the process of the test, for children of `run_bounded` to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.embedded.control import leaders
from kclient.embedded.replication import append_all
from kclient.records.batch import read_batches

Serve = Callable[[bytes], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Put batches into partition 0 of topic t unchanged; return the bootstrap servers.

    Their timestamps are old, and a run on a busy machine lasts until the next retention check: keep them.
    """
    with EmbeddedCluster(topics={"t": 1}, config={"log.retention.ms": -1}) as kafka:

        def put(field: bytes) -> str:
            batches = [field[one.start : one.end] for one in read_batches(field)]
            partition = leaders.find(kafka.state, "t", 0)
            kafka.cluster_loop.call(lambda: append_all(kafka.state, partition, batches))
            return kafka.bootstrap_servers

        yield put
