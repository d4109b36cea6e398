"""The configuration: Kafka's own keys, checked as a whole before anything else happens.

`model.py` is the table of the keys that kclient honours, `refused.py` that of the keys it knows and refuses, and
`loading.py` joins keyword arguments, a mapping and a Java properties file. Nothing is accepted and ignored.
"""

from __future__ import annotations

from kclient.config.loading import discard, load
from kclient.config.model import Config

__all__ = ["Config", "discard", "load"]
