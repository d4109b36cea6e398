"""Other Sparks beside the one that the project is developed with: each release in an environment of its own, Spark's
own Kafka source for the JVM, and a standalone cluster on loopback. For tests and benchmarks."""

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a Spark that lives as long as a test: half the compiler, and a collector of one thread."""
