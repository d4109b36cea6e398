"""Whether a call comes from inside another one: from a listener, a callback, or a task that they have begun.

Who leaves waits for what other tasks are doing, and must not wait for what waits for it. Imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_around: ContextVar[tuple[object, ...]] = ContextVar("around", default=())


@contextmanager
def inside(scope: object) -> Iterator[None]:
    """What is called in this block, and in the tasks that it begins, is inside of `scope`."""
    before = _around.get()
    _around.set((*before, scope))
    try:
        yield
    finally:
        _around.set(before)


def is_inside(scope: object) -> bool:
    """Whether this code was called from inside of `scope`."""
    return any(outer is scope for outer in _around.get())
