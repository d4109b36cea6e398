"""Which names a topic may have."""

from __future__ import annotations

import re
from typing import Final

LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def legal_name(name: str) -> bool:
    """Letters, digits, dots, underscores and hyphens, at most 249, and neither "." nor ".."."""
    return LEGAL.fullmatch(name) is not None and name not in (".", "..")
