"""What the tests of ingest jobs share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kclient.embedded import EmbeddedCluster


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """A cluster with the topic that `support.fill` writes to."""
    with EmbeddedCluster(topics={"orders": 3}) as running:
        yield running
