"""One `client.properties`, two clients: Java's reads the embedded cluster over SASL_SSL with it, and so does ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from kclient import Consumer
from kclient.embedded import EmbeddedCluster, Listener
from localkafka import unavailable
from tests.embedded.test_java_clients import TOOLS, run
from tests.security.certificates import Authority
from tests.security.conftest import PLAIN_MODULE, SCRAM_MODULE

RECORDS = 500
PASSWORD = 'pass,w"ord=1'


@pytest.mark.kafka
@pytest.mark.skipif(unavailable("4.3.1") is not None, reason=f"no Kafka 4.3.1: {unavailable('4.3.1')}")
@pytest.mark.spec("B.1.2", "B.1.3", "B.4.12")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_java_and_we_read_with_the_same_properties(mechanism: str, tmp_path: Path) -> None:
    authority = Authority()
    mechanisms = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    tls = authority.issue("127.0.0.1").server_context(tmp_path, trusted=authority.pem)
    listener = Listener("SASL_SSL", ssl=tls, mechanisms=mechanisms)
    with EmbeddedCluster(topics={"orders": 3}, listeners=[listener], users={"alice": PASSWORD}) as cluster:
        cluster.produce("orders", [b"x" * 100] * RECORDS)
        properties = tmp_path / "client.properties"
        properties.write_text(
            f"""
            security.protocol=SASL_SSL
            sasl.mechanism={mechanism}
            sasl.jaas.config={PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE} required \\
                username="alice" password="pass,w\\\\"ord=1";
            ssl.truststore.location={authority.write_pkcs12(tmp_path / "trust.p12", "changeit")}
            ssl.truststore.password=changeit
            ssl.keystore.location={authority.issue("me").write_pkcs12(tmp_path / "client.p12", "changeit")}
            ssl.keystore.password=changeit
            ssl.key.password=changeit
            """
        )
        where = ("--bootstrap-server", cluster.servers("SASL_SSL"), "--command-config", str(properties))
        wanted = ("--topic", "orders", "--num-records", str(RECORDS), "--group", "java", "--timeout", "20000")
        table = run(f"{TOOLS}.ConsumerPerformance", *where, *wanted)
        assert f" {RECORDS}, " in table
        assert sum(cluster.committed("java").values()) == RECORDS
        with Consumer(
            "orders",
            properties=properties,
            bootstrap_servers=cluster.servers("SASL_SSL"),
            group_id="ours",
            auto_offset_reset="earliest",
        ) as consumer:
            found = 0
            while found < RECORDS and (records := consumer.poll(timeout=10.0)):
                found += len(records)
        assert found == RECORDS
