"""`kclient ingest` with tokens of AWS, or of a function in a file: each process makes its own, nothing shows one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster, Listener
from kclient.spark.sink import manifest
from tests.cli.support import Done, call
from tests.security.tokens import jwt
from tests.security.vendor_endpoints import VendorBrokers, vendor, without_credentials

REGION = "eu-central-1"


def ingest(capsys: pytest.CaptureFixture[str], place: Path, servers: str, settings: str) -> Done:
    file = place / "client.properties"
    file.write_text(
        f"bootstrap.servers={servers}\nsecurity.protocol=SASL_PLAINTEXT\nallow.plaintext.credentials=true\n{settings}"
    )
    job = ("--topics", "orders", "--engine", "direct", "--parallelism", "2")
    sink = ("--sink", f"parquet:{place / 'raw'}", "--checkpoint", str(place / "checkpoint"))
    return call(capsys, "ingest", "--properties", str(file), *job, *sink)


@pytest.mark.parametrize(
    "settings",
    [
        "sasl.mechanism=AWS_MSK_IAM\nsasl.jaas.config=software.amazon.msk.auth.iam.IAMLoginModule required;\n"
        "sasl.client.callback.handler.class=software.amazon.msk.auth.iam.IAMClientCallbackHandler\n",
        "sasl.mechanism=OAUTHBEARER\nsasl.oauth.token.provider=aws_msk_iam\n",
    ],
    ids=["the properties of Java", "aws_msk_iam"],
)
def test_each_process_signs_its_own_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], settings: str
) -> None:
    without_credentials(monkeypatch, tmp_path)
    with vendor() as aws:
        monkeypatch.setenv("AWS_REGION", REGION)
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{aws.url}/credentials")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "pod-token")
        listeners = [Listener("SASL_PLAINTEXT", mechanisms=("OAUTHBEARER",))]
        brokers = VendorBrokers(vendor=aws, region=REGION)
        with EmbeddedCluster(topics={"orders": 2}, listeners=listeners, oauth=brokers) as cluster:
            for partition in (0, 1):
                cluster.produce("orders", ["x"] * 50, partition=partition)
            done = ingest(capsys, tmp_path, cluster.servers("SASL_PLAINTEXT"), settings)
    assert done.code == 0, done.err
    assert manifest.count(tmp_path / "raw") == 100
    assert len(aws.keys) >= 2  # of the process that plans, and of those that read
    written = [path.read_bytes() for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    shown = b"\n".join([*written, done.out.encode(), done.err.encode()])
    for secret in (*aws.keys.values(), "pod-token", "session-ASIA", "X-Amz"):
        assert secret.encode() not in shown


def test_a_function_is_imported_by_each_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    listeners = [Listener("SASL_PLAINTEXT", mechanisms=("OAUTHBEARER",))]
    with EmbeddedCluster(topics={"orders": 2}, listeners=listeners) as cluster:
        cluster.produce("orders", ["x"] * 50, partition=1)
        settings = f"sasl.mechanism=OAUTHBEARER\nsasl.oauth.token.provider={jwt.__module__}:jwt\n"
        done = ingest(capsys, tmp_path, cluster.servers("SASL_PLAINTEXT"), settings)
    assert done.code == 0, done.err
    assert manifest.count(tmp_path / "raw") == 50
