"""Whether the last commit of all should be tried on: a cluster whose every broker refuses is seldom back in a moment.

What is not committed is read again, so nothing is lost by going; waiting out the whole timeout of close() is what
people call a hang.
"""

from __future__ import annotations

from typing import Final

from kclient.network.cluster import Cluster
from kclient.runtime import Runtime

PATIENCE_SECONDS: Final = 1.0


class OutOfReach:
    """Asked after each try that failed. Until one second has passed, the brokers may come back."""

    def __init__(self, cluster: Cluster, runtime: Runtime) -> None:
        self._cluster = cluster
        self._runtime = runtime
        self._began = runtime.now()
        self._refused = False  # by every broker, since one was connected

    def for_good(self) -> bool:
        """Whether every broker has been tried in vain, and no connection came about since."""
        self._refused = not self._cluster.in_touch and (self._refused or self._cluster.out_of_reach)
        return self._refused and self._runtime.now() - self._began >= PATIENCE_SECONDS
