"""Record what Kafka's own classes say of messages, errors and settings: `python -m tools.record_java_facts`.

tests/vectors/data/java_facts.tsv.gz holds, for every message that has a schema here, the layout of each version that
Kafka 4.4.0 speaks, every error code and every key of its consumer. `tests/vectors/test_java_facts.py` compares.
Needs a JDK and the jars of Kafka 4.4.0, which it fetches as the tests do.
"""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path
from typing import Final

from kclient.protocol.registry import message_names
from localkafka.jars import classpath

KAFKA: Final = "4.4.0"
SOURCE: Final = Path(__file__).parent / "java" / "Facts.java"
FILE: Final = Path(__file__).parents[1] / "tests" / "vectors" / "data" / "java_facts.tsv.gz"
TIMEOUT_SECONDS: Final = 120


def main() -> None:
    """Write the file."""
    command = ["java", "-cp", classpath(KAFKA), str(SOURCE), *sorted(message_names())]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=True)
    FILE.write_bytes(gzip.compress(run.stdout.encode(), mtime=0))
    print(f"{len(run.stdout.splitlines())} lines")


if __name__ == "__main__":
    main()
