"""A batch over TLS and SASL: options that travelled to a worker connect there, and show no secret on the way."""

from __future__ import annotations

import asyncio
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster, Listener
from kclient.errors import AuthenticationError, ConfigError
from kclient.spark.arrow_batches import default_columns
from kclient.spark.batch import plan_batch
from kclient.spark.executor import clients, read_range
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange
from tests.security.certificates import Authority

PASSWORD = "tell-nobody"
SCRAM = "kafkashaded.org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture
def options(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The options of a batch over the topic `orders`, which has ten records."""
    authority = Authority()
    tls = authority.issue("127.0.0.1").server_context(tmp_path)
    listener = Listener("SASL_SSL", ssl=tls, mechanisms=("SCRAM-SHA-512", "PLAIN"))
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


def rows(options: SourceOptions) -> list[bytes]:
    columns = default_columns(include_headers=False)
    return sorted(
        row["value"]
        for wanted in asyncio.run(plan_batch(options))
        for batch in read_range(wanted, options, columns)
        for row in batch.to_pylist()
    )


@pytest.mark.spec("SP-13", "SP-44")
def test_secrets_by_reference_are_followed_where_the_connection_is_made(
    options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, certificates = tmp_path / "jaas", options.pop("kafka.ssl.truststore.certificates")
    entry.write_text(options.pop("kafka.sasl.jaas.config").replace(PASSWORD, "an old one"))
    references = {"kafka.sasl.jaas.config.file": str(entry), "kafka.ssl.truststore.certificates.env": "KC_CA"}
    travelled = pickle.loads(pickle.dumps(SourceOptions.parse({**options, **references})))
    with pytest.raises(ConfigError, match="KC_CA, which is not set"):
        rows(travelled)
    monkeypatch.setenv("KC_CA", certificates)
    with pytest.raises(AuthenticationError):
        rows(travelled)
    entry.write_text(entry.read_text().replace("an old one", PASSWORD))  # the secret was rotated
    assert rows(travelled) == [b"%d" % number for number in range(10)]


@pytest.mark.spec("SP-43")
def test_librdkafkas_name_of_the_trust_store_is_taken(options: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(options.pop("kafka.ssl.truststore.certificates"))
    del options["kafka.ssl.truststore.type"]
    parsed = SourceOptions.parse({**options, "kafka.ssl.ca.location": str(tmp_path / "ca.pem")})
    assert rows(parsed) == [b"%d" % number for number in range(10)]


@pytest.mark.spec("SP-45", "I-39", "ST-17")
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_a_refusal_shows_no_password_even_with_its_local_variables(
    options: dict[str, str], mechanism: str
) -> None:
    entry = options["kafka.sasl.jaas.config"].replace(PASSWORD, "hunter2")
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
    given = {"SCRAM-SHA-512": entry, "PLAIN": entry.replace(SCRAM, plain)}[mechanism]
    parsed = SourceOptions.parse(
        {**options, "kafka.sasl.mechanism": mechanism, "kafka.sasl.jaas.config": given}
    )
    with pytest.raises(AuthenticationError) as caught:
        asyncio.run(plan_batch(parsed))
    with pytest.raises(AuthenticationError) as at_work:
        list(read_range(OffsetRange("orders", 0, 0, 5), parsed, ["value"]))
    for error in (caught.value, at_work.value):
        found = traceback.TracebackException.from_exception(error, capture_locals=True)
        text = "".join(line for line in found.format() if __file__ not in line)
        assert "mechanism" in text
        assert "hunter2" not in text


@pytest.mark.spec("SP-45", "I-39")
def test_a_refused_password_is_reported_at_once_and_not_shown(options: dict[str, str]) -> None:
    entry = options["kafka.sasl.jaas.config"].replace(PASSWORD, "hunter2")
    parsed = SourceOptions.parse({**options, "kafka.sasl.jaas.config": entry})
    with pytest.raises(AuthenticationError) as caught:
        asyncio.run(plan_batch(parsed))
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(parsed)
