"""The time of a cluster, in the hands of a test."""

from __future__ import annotations

from kclient.embedded.clock import Clock
from kclient.embedded.duration import Duration, seconds
from kclient.embedded.home import HasHome, Home, control


class ClusterClock:
    """The time of a cluster, which a test may let pass."""

    def __init__(self, cluster: HasHome, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    @property
    def home(self) -> Home:
        """Where the cluster lives. Raises UsageError when it does not run."""
        return self._cluster.home

    @control
    def advance(self, duration: Duration) -> None:
        """Let so much time pass at once ("10m", 1.5, a timedelta): sessions and records expire as they would have.

        The clients' time does not move. Raises ArgumentError for a time that goes back.
        """
        self._clock.advance(seconds(duration))

    @control
    def now(self) -> float:
        """Seconds that never go back."""
        return self._clock.now()

    @control
    def wall_ms(self) -> int:
        """Milliseconds since 1970, UTC, as the brokers see them."""
        return self._clock.wall_ms()
