"""README's block about security runs as it stands: only the broker, the topic and the places of the files change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.security.conftest import TOPIC, SecureKafka

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.kafka
def test_the_block_reads_the_topic_over_sasl_ssl(secure_kafka: SecureKafka, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(secure_kafka.password + "\n")
    names = {
        "broker.example.com:9093": secure_kafka.at("SASL_SSL"),
        '"flights"': repr(TOPIC),
        "/run/secrets/kafka": str(secret),
        "ca.pem": str(secure_kafka.authority.write_pem(tmp_path / "ca.pem")),
        "consumer.poll(timeout=5.0)": "topics = consumer.list_topics()",
    }
    (block,) = re.findall(
        r"^```python\n(from kclient import Consumer, file.*?)^```$",
        README.read_text(),
        re.DOTALL | re.MULTILINE,
    )
    for written, here in names.items():
        block = block.replace(written, here)
    found: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), found)
    assert TOPIC in found["topics"]  # type: ignore[operator]
