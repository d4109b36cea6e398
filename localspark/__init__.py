"""Other Sparks beside the one that the project is developed with: each release in an environment of its own, Spark's
own Kafka source for the JVM, and a standalone cluster on loopback. For tests and benchmarks."""

from localkafka.jars import QUICK_START

JAVA_OPTIONS = " ".join(QUICK_START)
"""For a Spark that lives as long as a test, as Spark's settings take them."""
