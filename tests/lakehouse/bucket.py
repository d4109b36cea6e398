"""An object store in memory below the real `ObjectStore`: its client, with the faults of a service.

fault of one request    the service does          the client hears
refused                 nothing                   503
lost                    the request               nothing, until it stops waiting
late                    the write, after that     nothing, until it stops waiting
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs
from obstore.exceptions import AlreadyExistsError, GenericError

from kclient.spark.sink.store import ObjectStore
from tests.lakehouse.scheduler import EPOCH, Scheduler

BUCKET: Final = "s3://lake/"
FAULTS: Final = ("refused", "lost", "late")
FAILS: Final = 0.15
TIMEOUT: Final = 30.0
LATEST: Final = 90.0


@attrs.define(eq=False)
class Bucket:
    """The objects. `watch` is called with the key of each that is written. It fails now and then until a time."""

    scheduler: Scheduler
    rng: random.Random
    watch: Callable[[str], None]
    objects: dict[str, bytes] = attrs.field(factory=dict)
    fails_until: float = 0.0
    down_until: float = 0.0

    def write(self, key: str, content: bytes, *, create: bool) -> None:
        """Write an object. Raises AlreadyExistsError."""
        if create and key in self.objects:
            raise AlreadyExistsError(f"{key}: 412 Precondition Failed")
        self.objects[key] = content
        self.watch(key)

    def below(self, prefix: str) -> dict[str, bytes]:
        """Return a copy of the objects below a prefix."""
        return {key: content for key, content in self.objects.items() if key.startswith(f"{prefix}/")}

    def replace(self, prefix: str, objects: dict[str, bytes]) -> None:
        """Put a copy in place of the objects below a prefix."""
        for key in self.below(prefix):
            del self.objects[key]
        self.objects |= objects

    def store(self, url: str) -> ObjectStore:
        """Return the store of a URL below this bucket."""
        return ObjectStore(url, {}, BucketClient(self, url.removeprefix(BUCKET)))  # type: ignore[arg-type]


@attrs.frozen
class FoundObject:
    """What `get` returns."""

    content: bytes

    @property
    def meta(self) -> dict[str, int]:
        """Its size."""
        return {"size": len(self.content)}

    def bytes(self) -> bytes:
        """Return the content."""
        return self.content


@attrs.define(eq=False)
class BucketClient:
    """The calls of an obstore client that `ObjectStore` makes."""

    bucket: Bucket
    prefix: str

    def put(self, key: str, content: bytes, *, mode: str = "overwrite", use_multipart: bool = True) -> None:
        """Write an object."""
        bucket, key, create = self.bucket, f"{self.prefix}/{key}", mode == "create"
        fault = self._ask()
        if fault == "late":
            bucket.scheduler.at(
                bucket.scheduler.now + bucket.rng.uniform(0.0, LATEST),
                lambda: self._arrive(key, content, create),
            )
            self._time_out()
        if fault == "lost":
            self._arrive(key, content, create)
            self._time_out()
        bucket.write(key, content, create=create)
        bucket.scheduler.pause(0.01)

    def get(self, key: str) -> FoundObject:
        """Read an object. Raises FileNotFoundError."""
        if self._ask() in ("lost", "late"):
            self._time_out()
        found = self.bucket.objects.get(f"{self.prefix}/{key}")
        if found is None:
            raise FileNotFoundError(key)
        return FoundObject(found)

    def list(self, prefix: str | None) -> Iterator[list[dict[str, Any]]]:
        """Yield one page with all objects below a prefix."""
        if self._ask() in ("lost", "late"):
            self._time_out()
        root = self.prefix if prefix is None else f"{self.prefix}/{prefix}"
        modified = datetime.datetime.fromtimestamp(EPOCH, datetime.UTC)
        yield [
            {"path": key.removeprefix(f"{self.prefix}/"), "size": len(content), "last_modified": modified}
            for key, content in self.bucket.below(root).items()
        ]

    def delete(self, key: str) -> None:
        """Delete an object."""
        fault = self._ask()
        if fault != "late":
            self.bucket.objects.pop(f"{self.prefix}/{key}", None)
        if fault in ("lost", "late"):
            self._time_out()

    def _ask(self) -> str:
        """Let a request take its time. Return its fault. Raises what a service answers that fails."""
        bucket = self.bucket
        bucket.scheduler.pause(bucket.rng.uniform(0.005, 0.05))
        if bucket.scheduler.now < bucket.down_until:
            self._time_out()
        failing = bucket.scheduler.now < bucket.fails_until and bucket.rng.random() < FAILS
        fault = bucket.rng.choice(FAULTS) if failing else ""
        if fault == "refused":
            raise GenericError("Server returned non-2xx status code: 503 Service Unavailable")
        return fault

    def _arrive(self, key: str, content: bytes, create: bool) -> None:
        if not (create and key in self.bucket.objects):
            self.bucket.write(key, content, create=create)

    def _time_out(self) -> None:
        self.bucket.scheduler.pause(TIMEOUT)
        raise GenericError("operation timed out")
