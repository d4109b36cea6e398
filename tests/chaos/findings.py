"""What a check has found: the promise that was broken, and how."""

from __future__ import annotations

import attrs


@attrs.frozen
class Finding:
    """`promise` is an id of the list of invariants: I-01…I-12, and I-22 where the group does not come to rest."""

    promise: str
    text: str

    def __str__(self) -> str:
        return f"{self.promise} {self.text}"
