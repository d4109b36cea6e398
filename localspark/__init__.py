"""Other Sparks beside the one that the project is developed with: each release in an environment of its own, Spark's
own Kafka source for the JVM, and a standalone cluster on loopback. For tests and benchmarks."""
