"""The Kafka releases that start on Java 17, and what each needs on its classpath besides its own dependencies."""

from __future__ import annotations

import attrs

# What Kafka's own tools are run from, whichever broker they ask: 4.4.0 came without its kafka-tools.
NEWEST = "4.3.1"


@attrs.frozen
class Release:
    """One release: the artifacts (`group:name:version`) to fetch, and whether it keeps its metadata itself (KRaft)."""

    version: str
    scala: str
    kraft: bool = False
    extra: tuple[str, ...] = ()
    create_topics_version: int = 2  # 0.10 has 1, and 4.x no longer

    @property
    def artifacts(self) -> tuple[str, ...]:
        """Everything that goes on the classpath, dependencies of these left to Maven."""
        return (f"org.apache.kafka:kafka_{self.scala}:{self.version}", *self.extra)


# Their own ZooKeeper 3.4 client fails on Java 14 and later.
_NEWER_ZOOKEEPER = ("org.apache.zookeeper:zookeeper:3.5.9",)
_JAXB_AND_LOGGING = ("javax.xml.bind:jaxb-api:2.3.1", "org.slf4j:slf4j-log4j12:1.7.25")

RELEASES = {
    release.version: release
    for release in (
        Release("4.4.0", "2.13", kraft=True, extra=("org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",)),
        Release(
            "4.3.1",
            "2.13",
            kraft=True,
            extra=(
                "org.apache.kafka:kafka-tools:4.3.1",
                "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
            ),
        ),
        Release("3.9.1", "2.13", kraft=True),
        Release("2.8.2", "2.13"),
        Release("2.3.1", "2.12", extra=_NEWER_ZOOKEEPER + _JAXB_AND_LOGGING),
        Release("2.1.1", "2.12", extra=_NEWER_ZOOKEEPER + _JAXB_AND_LOGGING),
        Release("1.1.1", "2.12", extra=_JAXB_AND_LOGGING),
        Release("0.11.0.3", "2.12", extra=_JAXB_AND_LOGGING),
        Release("0.10.2.2", "2.11", extra=_JAXB_AND_LOGGING, create_topics_version=1),
    )
}
