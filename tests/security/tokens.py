"""Tokens without a signature, as Kafka accepts them by default."""

from __future__ import annotations

import time
from typing import Any

from kclient.security.oauthbearer import unsecured_token


def jwt(lifetime: float = 3_600.0, **claims: Any) -> str:
    """A token of alice for so many seconds from now on."""
    now = time.time()
    return unsecured_token({"sub": "alice", "iat": now, "exp": now + lifetime, **claims})
