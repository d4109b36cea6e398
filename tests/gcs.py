"""The XML API of Google Cloud Storage on loopback, as far as kclient and delta-rs use it: S3Proxy behind a translation.

No emulator serves: they speak the JSON API of GCS, and obstore and delta-rs its XML API, which is S3's but for

| | GCS | passed on as |
|---|---|---|
| credentials | a token, here signed by the key of a service account | a signature of S3 |
| create once | `x-goog-if-generation-match: 0` | `If-None-Match: *` |
| wrong credentials | 401 AuthenticationRequired | |

So what a service does with the condition is S3Proxy's doing, and these tests prove the client's half: URL, endpoint,
credentials, the requests, and what is made of the answers.

It is a process of its own: delta-rs keeps the lock of the interpreter while it waits for some answers.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Final

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from locals3 import S3Server
from locals3.server import REGION
from tests.faulty_http import FaultyProxy, answer

EMAIL: Final = "lake@project.iam.gserviceaccount.com"
KEPT: Final = frozenset({"range", "content-type"})
REFUSED: Final = b"<?xml version='1.0'?><Error><Code>AuthenticationRequired</Code></Error>"


def account_file(path: Path) -> Path:
    """Write the file of a new service account, as Google's console gives it out."""
    pem = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    content = {
        "type": "service_account",
        "project_id": "project",
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": EMAIL,
        "client_id": "1",
        "token_uri": "https://oauth2.googleapis.com/token",
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


class Translation(FaultyProxy):
    """Passes requests of the XML API on to an S3, with credentials of it; `account` is the file of the one who may."""

    def __init__(self, endpoint: str, credentials: Credentials, account: Path) -> None:
        super().__init__(endpoint)
        self._signer: Final = S3SigV4Auth(credentials, "s3", REGION)
        pem = json.loads(account.read_bytes())["private_key"].encode()
        key = serialization.load_pem_private_key(pem, None)
        assert isinstance(key, rsa.RSAPrivateKey)
        self._key: Final = key.public_key()

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        if self._is_signed(request.headers.get("Authorization", "")):
            path, mark, query = request.path.partition("?")
            request.path = path + mark + query.replace("+", "%20")  # S3 signs a blank in this form alone
            super().handle(request)
        else:
            request.rfile.read(int(request.headers.get("Content-Length") or 0))
            answer(request, 401, REFUSED)

    def headers_of(self, request: BaseHTTPRequestHandler, body: bytes) -> dict[str, str]:
        """Return the headers that S3 takes, signed."""
        kept = {name: value for name, value in request.headers.items() if name.lower() in KEPT}
        if (generation := request.headers.get("x-goog-if-generation-match")) is not None:
            assert generation == "0", "only creation is translated"
            kept["If-None-Match"] = "*"
        url = f"http://{self._upstream}{request.path}"
        signed = AWSRequest(method=request.command, url=url, headers=kept, data=body)
        self._signer.add_auth(signed)
        return dict(signed.headers.items())

    def _is_signed(self, authorization: str) -> bool:
        """Return whether a token was signed by the account's key, and is of now."""
        kind, _, token = authorization.partition(" ")
        signed, _, signature = token.rpartition(".")
        try:
            self._key.verify(_decoded(signature), signed.encode(), padding.PKCS1v15(), SHA256())
            claims = json.loads(_decoded(signed.partition(".")[2]))
        except (InvalidSignature, ValueError):
            return False
        return kind == "Bearer" and claims["iss"] == EMAIL and claims["exp"] > time.time()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@contextmanager
def translated(server: S3Server, account: Path) -> Iterator[str]:
    """Run the translation before an S3 in a process; return its endpoint."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.gcs", str(account)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **server.environment},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()  # which ends it


def main() -> None:
    """Serve until the standard input ends."""
    credentials = Credentials(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
    with Translation(os.environ["AWS_ENDPOINT_URL"], credentials, Path(sys.argv[1])) as running:
        print(running.endpoint, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
