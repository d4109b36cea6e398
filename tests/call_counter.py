"""The cost of code, counted in function calls, which a slow machine does not change."""

from __future__ import annotations

import sys
from typing import Any


class CallCounter:
    """Count the function calls inside the block, C functions included."""

    def __enter__(self) -> CallCounter:
        self.count = 0
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _called(self, frame: Any, event: str, arg: Any) -> None:
        self.count += event in ("call", "c_call")
