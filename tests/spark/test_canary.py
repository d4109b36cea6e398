"""A secret in the options is shown nowhere: not by plans, errors, logs, progress, checkpoints or events.

The embedded cluster wants a password, or a token that a client gets for its secret, and `canary_job.py` reads from it
in a Spark session of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kclient.embedded import EmbeddedCluster, Listener, OAuthValidator
from tests.security.authorization_server import AuthorizationServer
from tests.security.certificates import Authority
from tests.spark.canary_job import CLIENT_SECRET

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]

CANARY = "tell-nobody-4711"
SCRAM = "kafkashaded.org.apache.kafka.common.security.scram.ScramLoginModule"
ROOT = Path(__file__).parents[2]


class Seen(NamedTuple):
    """What the job printed, and what Spark wrote: its log, and every file of the checkpoints and events."""

    output: dict[str, str]
    log: str
    files: dict[str, bytes]
    secrets: tuple[str, ...] = ()  # the password and the client's secret, and the signature of each token


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """One run of the job in `canary_job.py`."""
    if shutil.which("java") is None:
        pytest.skip("no Spark: there is no java on the path")
    where = tmp_path_factory.mktemp("canary")
    authority = Authority()
    tls = authority.issue("127.0.0.1").server_context(where)
    listener = Listener("SASL_SSL", ssl=tls, mechanisms=("SCRAM-SHA-512", "OAUTHBEARER"))
    with (
        AuthorizationServer(clients={"reader": CANARY}) as server,
        EmbeddedCluster(
            topics={"orders": 2},
            listeners=[listener],
            users={"alice": CANARY},
            oauth=OAuthValidator(jwks=server.jwks(), expected_audience="kafka"),
        ) as cluster,
    ):
        cluster.produce("orders", [b"%d" % number for number in range(10)])
        entry = f'{SCRAM} required username="alice" password="{CANARY}";'
        options = {
            "kafka.bootstrap.servers": cluster.servers("SASL_SSL"),
            "subscribe": "orders",
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.sasl.jaas.config": entry,
            "kafka.ssl.truststore.certificates": authority.pem,
        }
        refused = {**options, "kafka.sasl.jaas.config": entry.replace(CANARY, f"{CANARY}-wrong")}
        client = {name: text for name, text in options.items() if name != "kafka.sasl.jaas.config"} | {
            "kafka.sasl.mechanism": "OAUTHBEARER",
            "kafka.sasl.login.retry.backoff.max.ms": "100",
            "kafka.sasl.oauthbearer.token.endpoint.url": server.token_url,
            "kafka.sasl.oauthbearer.client.credentials.client.id": "reader",
            CLIENT_SECRET: CANARY,
        }
        given = {"where": str(where), "options": options, "refused": refused, "client": client}
        found = run({**given, "secret": CANARY}, where)
        assert len(server.signed) > 2
        yield found._replace(secrets=(CANARY, *(token.split(".")[2] for token in server.signed)))


def run(given: dict[str, object], where: Path) -> Seen:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("canary_job.py"))],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=360,
        env=environment,
        cwd=where,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    written = [path for path in where.rglob("*") if path.is_file() and path.suffix not in (".pem", ".key")]
    files = {str(path.relative_to(where)): path.read_bytes() for path in written}
    return Seen(json.loads(done.stdout.splitlines()[-1]), done.stderr, files)


@pytest.mark.spec("SP-45", "ST-17", "I-39")
def test_nothing_that_a_user_sees_holds_the_secret(seen: Seen) -> None:
    assert seen.output["count"] == "10"
    assert "refused the authentication" in seen.output["a refused password"]
    assert "refused the authentication" in seen.output["a refused password in a stream"]
    assert "minPartitions" in seen.output["a bad option"]
    assert "minPartitions" in seen.output["a bad option in a stream"]
    assert "did you mean" in seen.output["a misspelt secret"]
    assert "77" in seen.output["a lost offset"]
    assert "kclient" in seen.output["explain"]
    assert "endOffset" in seen.output["progress"]
    assert seen.output["tokens"] == "10"
    assert "HTTP 401 (invalid_client" in seen.output["a refused client"]
    assert "HTTP 401 (invalid_client" in seen.output["a refused client in a stream"]
    for secret in seen.secrets:
        assert [what for what, text in seen.output.items() if secret in text] == []


@pytest.mark.spec("SP-45", "ST-17", "I-39")
def test_nothing_that_spark_writes_holds_the_secret(seen: Seen) -> None:
    assert any("/offsets/" in name for name in seen.files)
    assert any(b"SparkListenerSQLExecutionStart" in content for content in seen.files.values())
    assert "terminated with error" in seen.log
    for secret in seen.secrets:
        assert [name for name, content in seen.files.items() if secret.encode() in content] == []
        assert secret not in seen.log


@pytest.mark.spec("SP-45")
def test_a_warning_recommends_references(seen: Seen) -> None:
    """Python's log is a table of Spark's where that is switched on, as it is here."""
    assert "Give references instead" in seen.output["python logs"] + seen.log
