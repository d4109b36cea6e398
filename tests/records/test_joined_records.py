"""joined_records, the native iterator of `for record in consumer`, with numbers for records."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

native = pytest.importorskip("kclient.records._native", reason="the native decoder is not built")


def joined(next_iterator: Callable[[], object]) -> Iterator[Any]:
    found: Iterator[Any] = native.joined_records(next_iterator)
    return found


def one_after_another(*deliveries: object) -> Callable[[], object]:
    left = list(deliveries)

    def following() -> object:
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    return following


def test_it_yields_the_records_of_all_iterators_until_none() -> None:
    records = joined(one_after_another(iter([1, 2]), iter([]), iter([3]), None, None))
    assert list(records) == [1, 2, 3]
    assert next(records, "ended") == "ended"


def test_it_goes_on_after_an_exception() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise KeyError

    records = joined(one_after_another(failing(), OSError("broken"), iter([2]), None))
    assert next(records) == 1
    with pytest.raises(KeyError):
        next(records)
    with pytest.raises(OSError, match="broken"):
        next(records)
    assert list(records) == [2]


def test_what_is_no_iterator_is_refused() -> None:
    with pytest.raises(TypeError, match="must return an iterator or None"):
        next(joined(lambda: [1]))


def test_it_may_be_asked_again_while_it_waits_for_the_next_iterator() -> None:
    """As by a signal handler, or by another thread."""
    inner: list[int] = []

    def following() -> Iterator[int]:
        if not inner:
            inner.append(0)
            inner.append(next(records))
        return iter([len(inner), 7])

    records = joined(following)
    assert [next(records) for _ in range(3)] == [2, 7, 2]
    assert inner == [0, 1]


def test_another_thread_may_end_it_while_it_waits_for_the_next_iterator() -> None:
    waiting, go_on = threading.Event(), threading.Event()
    deliveries: list[object] = [iter([1]), None, iter([2])]

    def following() -> object:
        if threading.current_thread() is waiter:
            waiting.set()
            assert go_on.wait(30)
        return deliveries.pop(0)

    found: list[int] = []
    waiter = threading.Thread(target=lambda: found.append(next(records)))
    records = joined(following)
    waiter.start()
    assert waiting.wait(30)
    assert list(records) == [1]
    go_on.set()
    waiter.join(30)
    assert found == [2]


def test_nothing_is_leaked() -> None:
    class Iterated(list[int]):
        pass

    class Source:
        def __init__(self) -> None:
            self.left = [Iterated([1, 2]), Iterated([3])]
            self.records = joined(self.following)  # a cycle

        def following(self) -> Iterator[int] | None:
            return iter(self.left.pop(0)) if self.left else None

    source = Source()
    watched: list[weakref.ref[Any]] = [weakref.ref(source), *(weakref.ref(each) for each in source.left)]
    assert next(source.records) == 1
    del source
    gc.collect()
    assert [each() for each in watched] == [None, None, None]
