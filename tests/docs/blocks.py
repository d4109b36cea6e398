"""The examples of a page: what stands in its ```python blocks."""

from __future__ import annotations

import re


def python_blocks(page: str) -> list[str]:
    """The code of each block, in the order of the page's text."""
    return re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
