"""`kclient ingest` that logs in with a client secret or a private key: nothing that it writes or shows holds them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kclient.cli.exit_codes import NOT_ALLOWED
from kclient.embedded import EmbeddedCluster, Listener, OAuthValidator
from kclient.spark.sink import manifest
from tests.cli.support import Done
from tests.security.authorization_server import AuthorizationServer
from tests.security.signed_tokens import rsa_key
from tests.security.test_cloud_ingest import ingest

SECRET = "canary-9b41d7"
KEYS = "sasl.oauthbearer"
ENDPOINT = (
    "sasl.mechanism=OAUTHBEARER\nsasl.login.retry.backoff.max.ms=100\nsasl.oauthbearer.token.endpoint.url="
)
CREDENTIALS = f"{KEYS}.client.credentials.client"


@contextmanager
def command_lines() -> Iterator[set[bytes]]:
    """Collect the command lines of all processes that run meanwhile."""
    found: set[bytes] = set()
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.02):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    found.add(path.read_bytes())

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield found
    finally:
        over.set()
        watcher.join()


def settings(source: str, server: AuthorizationServer, folder: Path) -> str:
    """The lines of the properties file. Secrets are beside it, or in it."""
    (folder / "secret").write_text(SECRET)
    (folder / "key.pem").write_text(rsa_key().private_pem(SECRET))
    found = f"{ENDPOINT}{server.token_url}\n"
    client = f"{CREDENTIALS}.id=reader\n"
    return (
        found
        + {
            "a reference": f"{client}{CREDENTIALS}.secret.file={folder / 'secret'}\n",
            "the file itself": f"{client}{CREDENTIALS}.secret={SECRET}\n",
            "a key": f"{KEYS}.assertion.private.key.file={folder / 'key.pem'}\n"
            f"{KEYS}.assertion.private.key.passphrase.file={folder / 'secret'}\n"
            f"{KEYS}.assertion.claim.iss=reader\n{KEYS}.assertion.claim.sub=reader\n"
            f"{KEYS}.assertion.claim.aud={server.token_url}\n",
            "a wrong secret": f"{client}{CREDENTIALS}.secret={SECRET}-wrong\n",
        }[source]
    )


@pytest.mark.spec("SP-45", "I-39")
@pytest.mark.parametrize("source", ["a reference", "the file itself", "a key", "a wrong secret"])
def test_nothing_that_a_job_writes_or_shows_holds_a_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, source: str
) -> None:
    place, given = tmp_path / "job", tmp_path / "given"
    place.mkdir()
    given.mkdir()
    with AuthorizationServer(clients={"reader": SECRET}, assertion_keys=[rsa_key()]) as server:
        oauth = OAuthValidator(jwks=server.jwks(), expected_audience="kafka")
        listeners = [Listener("SASL_PLAINTEXT", mechanisms=("OAUTHBEARER",))]
        with EmbeddedCluster(topics={"orders": 2}, listeners=listeners, oauth=oauth) as cluster:
            for partition in (0, 1):
                cluster.produce("orders", ["x"] * 50, partition=partition)
            with command_lines() as lines, caplog.at_level(1):
                done = ingest(
                    capsys, place, cluster.servers("SASL_PLAINTEXT"), settings(source, server, given)
                )
    judge(done, place, source, len(server.token_requests()))
    assert any(b"worker_pool" in line for line in lines) == (source != "a wrong secret")
    files = [path for path in place.rglob("*") if path.is_file() and path.name != "client.properties"]
    shown = [*lines, *(path.read_bytes() for path in files), done.out.encode(), done.err.encode()]
    shown += [caplog.text.encode()]
    secrets = [SECRET, *rsa_key().private_pem(SECRET).splitlines()[1:4]]
    for secret in (*secrets, *(token.split(".")[2] for token in server.signed)):
        assert [text for text in shown if secret.encode() in text] == []


def judge(done: Done, place: Path, source: str, requests: int) -> None:
    if source == "a wrong secret":
        assert done.code == NOT_ALLOWED, done.err
        assert "answered HTTP 401 (invalid_client: Client authentication failed)" in done.err + done.out
        return
    assert done.code == 0, done.err
    assert manifest.count(place / "raw") == 100
    assert requests >= 2  # of the process that plans, and of those that read
