"""What something costs, counted in function calls, which no slow machine falsifies."""

from __future__ import annotations

import sys
from typing import Any


class Calls:
    """How many functions were called inside of the block, those of C included."""

    def __enter__(self) -> Calls:
        self.count = 0
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _called(self, frame: Any, event: str, arg: Any) -> None:
        self.count += event in ("call", "c_call")
