"""What a planted bug is, and the table of all of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs


@attrs.define
class Patch:
    """Replaces attributes of classes and modules, and puts back what was there."""

    _before: list[tuple[Any, str, Any]] = attrs.field(factory=list)

    def put(self, owner: Any, name: str, value: Any) -> Any:
        """Replace `owner.name`; give back what it was, for the patch to call.

        Raise TypeError if the replacement cannot be called as what it replaces: the bug would be another one.
        """
        before = vars(owner)[name]
        check_call(before, value)
        self._before.append((owner, name, before))
        setattr(owner, name, value)
        return before

    def undo(self) -> None:
        """Put everything back."""
        while self._before:
            setattr(*self._before.pop())


def check_call(before: Any, value: Any) -> None:
    """Raise TypeError unless `value` takes the arguments of the function or method `before`."""
    before, value = (getattr(one, "__func__", one) for one in (before, value))
    if not inspect.isfunction(before) or not inspect.isfunction(value):
        return
    parameters = inspect.signature(before).parameters.values()
    places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    names = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    inspect.signature(value).bind(*places, **dict.fromkeys(names))


Plant = Callable[[Patch], None]
Symptoms = list[tuple[str, str]]
Look = Callable[[int], Symptoms]


@attrs.frozen
class Mutant:
    """One planted bug: what the docstring of its function says. `seed` is where to look first.

    `look` says what is wrong under a seed, as (invariant, text) pairs, where the invariant has a test of its own; None:
    the seed is run as every seed is.
    """

    id: str
    invariants: tuple[str, ...]
    what: str
    plant: Plant
    seed: int
    look: Look | None = None


MUTANTS: Final[dict[str, Mutant]] = {}


def mutant(
    id: str,  # noqa: A002 – it is its id
    *invariants: str,
    seed: int = 1,
    look: Look | None = None,
) -> Callable[[Plant], Plant]:
    """Enter a function that plants a bug; `invariants` are those that should notice."""

    def enter(plant: Plant) -> Plant:
        MUTANTS[id] = Mutant(id, invariants, (plant.__doc__ or "").strip(), plant, seed, look)
        return plant

    return enter


@contextmanager
def planted(id: str) -> Iterator[None]:  # noqa: A002
    """The bug is there inside of the block."""
    patch = Patch()
    try:
        MUTANTS[id].plant(patch)
        yield
    finally:
        patch.undo()
