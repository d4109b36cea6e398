"""A small broker on a thread of its own, for the tests of Consumer."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.consumer.mini_broker import MiniBroker, in_a_thread


@pytest.fixture
def broker() -> Iterator[MiniBroker]:
    """Five records in a-0; when the test is over, the loop thread of kclient must have ended."""
    small = MiniBroker(topics={"a": 1})
    small.fill("a", 0, *(b"%d" % number for number in range(5)))
    with in_a_thread(small):
        yield small
    assert "kclient" not in {thread.name for thread in threading.enumerate()}
