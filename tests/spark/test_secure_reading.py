"""A batch over TLS and SASL: options that travelled to a worker connect there, and show no secret on the way."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster, Listener
from kclient.errors import AuthenticationError
from kclient.spark.columns import default_columns
from kclient.spark.options import SourceOptions
from kclient.spark.planning import plan_batch
from kclient.spark.worker import clients, read_range
from tests.security.certificates import Authority

PASSWORD = "tell-nobody"
SCRAM = "kafkashaded.org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture
def options(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The options of a batch over the topic `orders`, which has ten records."""
    authority = Authority()
    tls = authority.issue("127.0.0.1").server_context(tmp_path)
    listener = Listener("SASL_SSL", ssl=tls, mechanisms=("SCRAM-SHA-512",))
    with EmbeddedCluster(topics={"orders": 2}, listeners=[listener], users={"alice": PASSWORD}) as cluster:
        cluster.produce("orders", [b"%d" % number for number in range(10)])
        yield {
            "kafka.bootstrap.servers": cluster.servers("SASL_SSL"),
            "subscribe": "orders",
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.sasl.jaas.config": f'{SCRAM} required username="alice" password="{PASSWORD}";',
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.certificates": authority.pem,
        }
        clients.close()


@pytest.mark.spec("SP-43")
def test_a_batch_is_planned_and_read_over_sasl_ssl(options: dict[str, str]) -> None:
    travelled = pickle.loads(pickle.dumps(SourceOptions.parse(options)))
    ranges = asyncio.run(plan_batch(travelled))
    columns = default_columns(include_headers=False)
    batches = [batch for wanted in ranges for batch in read_range(wanted, travelled, columns)]
    assert sorted(row["value"] for batch in batches for row in batch.to_pylist()) == [
        b"%d" % number for number in range(10)
    ]


@pytest.mark.spec("SP-45", "I-39")
def test_a_refused_password_is_told_at_once_and_not_shown(options: dict[str, str]) -> None:
    entry = options["kafka.sasl.jaas.config"].replace(PASSWORD, "hunter2")
    parsed = SourceOptions.parse({**options, "kafka.sasl.jaas.config": entry})
    with pytest.raises(AuthenticationError) as caught:
        asyncio.run(plan_batch(parsed))
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(parsed)
