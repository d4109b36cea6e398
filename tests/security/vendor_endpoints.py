"""Stand-ins on loopback for what the vendors' libraries ask, and for what their brokers check of a token.

AWS      container credentials, STS AssumeRole         the signed URL, signed again with hashlib
Azure    managed identity of an App Service            scope and lifetime
Google   metadata server of a virtual machine          the envelope
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

import attrs
import pytest

from kclient.embedded import OAuthValidator
from kclient.embedded.oauth import AcceptedToken
from kclient.security.oauthbearer import claims_of, unsecured_token

ROLE: Final = "arn:aws:iam::123456789012:role/reader"
ACCOUNT: Final = "reader@project.iam.gserviceaccount.com"
LIFETIME: Final = 3_599
VENDOR_VARIABLES: Final = (
    "AWS_",
    "AZURE_",
    "IDENTITY_",
    "MSI_",
    "IMDS_",
    "GCE_",
    "GOOGLE_",
    "NO_GCE",
    "CLOUDSDK_",
)

AssumeRole: Final = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<AssumedRoleUser><AssumedRoleId>id:kclient</AssumedRoleId><Arn>{arn}</Arn></AssumedRoleUser>
<Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>
<SessionToken>{token}</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult>
<ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></AssumeRoleResponse>"""
AccessDenied: Final = """<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>AccessDenied</Code><Message>User: arn:aws:iam::123456789012:user/eva is not authorized to perform:
sts:AssumeRole on resource: {arn}</Message></Error><RequestId>1</RequestId></ErrorResponse>"""


@attrs.define
class Vendor:
    """The endpoints of one vendor's cloud, and the keys that it has given out."""

    url: str = ""
    keys: dict[str, str] = attrs.field(factory=dict)  # AWS: access key → secret key
    requests: list[str] = attrs.field(factory=list)
    refuses: bool = False
    counter: int = 0

    def answer(self, path: str, body: str, headers: Mapping[str, str]) -> tuple[int, str, str]:
        """Return status, content type and content."""
        self.requests.append(path)
        if path == "/credentials":
            return self._container(headers)
        if path == "/" and "Action=AssumeRole" in body:
            return self._assume(dict(parse_qsl(body)))
        if path.startswith("/msi"):
            return self._managed_identity(dict(parse_qsl(urlsplit(path).query)), headers)
        return self._metadata(path, headers)

    # --- AWS

    def _container(self, headers: Mapping[str, str]) -> tuple[int, str, str]:
        if self.refuses or headers.get("Authorization") != "pod-token":
            return 401, "text/plain", "no role for this container"
        key, secret = self.new_key()
        found = {"AccessKeyId": key, "SecretAccessKey": secret, "Token": f"session-{key}"}
        return 200, "application/json", json.dumps({**found, "Expiration": "2099-01-01T00:00:00Z"})

    def _assume(self, form: dict[str, str]) -> tuple[int, str, str]:
        self.requests[-1] = f"AssumeRole {form['RoleArn']} {form['RoleSessionName']} {form.get('ExternalId')}"
        if self.refuses:
            return 403, "text/xml", AccessDenied.format(arn=form["RoleArn"])
        key, secret = self.new_key()
        answer = AssumeRole.format(arn=form["RoleArn"], key=key, secret=secret, token=f"session-{key}")
        return 200, "text/xml", answer

    def new_key(self) -> tuple[str, str]:
        self.counter += 1
        key = f"ASIA{self.counter:016}"
        self.keys[key] = hashlib.sha256(key.encode()).hexdigest()[:40]
        return key, self.keys[key]

    def check_signed_url(self, token: str, region: str) -> str:
        """Return the access key of a token that an MSK broker would accept. Raise ValueError."""
        url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
        query = {name: values[0] for name, values in parse_qs(url.query, strict_parsing=True).items()}
        if url.scheme != "https" or url.netloc != f"kafka.{region}.amazonaws.com" or url.path != "/":
            raise ValueError(f"another address: {url.geturl()}")
        if query["Action"] != "kafka-cluster:Connect" or query["X-Amz-Expires"] != "900":
            raise ValueError("another action or lifetime")
        key, date, *scope = query["X-Amz-Credential"].split("/")
        if scope != [region, "kafka-cluster", "aws4_request"]:
            raise ValueError(f"another scope: {scope}")
        if query.get("X-Amz-Security-Token") not in (None, f"session-{key}"):
            raise ValueError("the session token of another key")
        if signature_of(query, url.netloc, self.keys[key], date, region) != query["X-Amz-Signature"]:
            raise ValueError("another signature")
        return key

    # --- Azure

    def _managed_identity(self, query: dict[str, str], headers: Mapping[str, str]) -> tuple[int, str, str]:
        if self.refuses or headers.get("X-IDENTITY-HEADER") != "identity-secret-of-the-app":
            wrong = {"statusCode": 400, "message": "No User Assigned or Delegated Managed Identity found"}
            return 400, "application/json", json.dumps(wrong)
        ends = int(time.time()) + LIFETIME
        token = unsecured_token({"sub": "4f9c", "aud": query["resource"], "exp": ends})
        found = {"access_token": token, "expires_on": str(ends), "resource": query["resource"]}
        return 200, "application/json", json.dumps({**found, "token_type": "Bearer"})

    # --- Google

    def _metadata(self, path: str, headers: Mapping[str, str]) -> tuple[int, str, str]:
        if path.startswith("/token") and self.refuses:
            wrong = {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
            return 400, "application/json", json.dumps(wrong)
        if "/token" in path:
            self.counter += 1
            found = {"access_token": f"ya29.{self.counter}", "expires_in": LIFETIME, "token_type": "Bearer"}
            return 200, "application/json", json.dumps(found)
        if "service-accounts/" in path:
            return (
                200,
                "application/json",
                json.dumps({"email": ACCOUNT, "scopes": [], "aliases": ["default"]}),
            )
        return 200, "text/plain", "project" if "project-id" in path else "googleapis.com"


def signature_of(query: Mapping[str, str], host: str, secret: str, date: str, region: str) -> str:
    """Return the signature of a presigned request, as "Signature Version 4" describes it."""
    signed = {name: text for name, text in query.items() if name not in ("X-Amz-Signature", "User-Agent")}
    pairs = sorted((quote(name, safe="-_.~"), quote(text, safe="-_.~")) for name, text in signed.items())
    empty = hashlib.sha256(b"").hexdigest()
    canonical = ["GET", "/", "&".join(map("=".join, pairs)), f"host:{host}", "", "host", empty]
    digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    scope = f"{date}/{region}/kafka-cluster/aws4_request"
    to_sign = "\n".join(["AWS4-HMAC-SHA256", query["X-Amz-Date"], scope, digest])
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()


def signed_at(token: str) -> float:
    """Return when a signed URL was signed, in seconds since 1970."""
    url = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    date = dict(parse_qsl(urlsplit(url).query))["X-Amz-Date"]
    return datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()


def without_credentials(monkeypatch: pytest.MonkeyPatch, home: Any) -> None:
    """Take away every credential of this machine: variables, files, and metadata servers."""
    import os

    for name in [name for name in os.environ if name.startswith(VENDOR_VARIABLES)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", f"{home}/aws-config")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", f"{home}/aws-credentials")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", f"{home}/gcloud")


@contextmanager
def vendor() -> Iterator[Vendor]:
    """Serve the endpoints on loopback."""
    standing = Vendor()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10

        def do_GET(self) -> None:
            self._answer("")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())

        def _answer(self, body: str) -> None:
            status, kind, content = standing.answer(self.path, body, self.headers)  # type: ignore[arg-type]
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Metadata-Flavor", "Google")
            self.send_header("Content-Length", str(len(content.encode())))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, *_: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    standing.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield standing
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@attrs.define(eq=False, kw_only=True)
class VendorBrokers(OAuthValidator):
    """Brokers that check a token as those of the vendors do: a signature, or what the endpoint has given out."""

    vendor: Vendor
    region: str

    def validate(self, token: str, now: float) -> AcceptedToken:
        """Accept a token. Raise ValueError."""
        if token.count(".") != 2:
            key = self.vendor.check_signed_url(token, self.region)
            return AcceptedToken(key, signed_at(token) + 900)
        claims = claims_of(token)
        header = json.loads(base64.urlsafe_b64decode(token.split(".", maxsplit=1)[0] + "=="))
        if header["alg"] == "GOOG_OAUTH2_TOKEN":
            access_token = base64.urlsafe_b64decode(token.split(".")[2] + "==").decode()
            if claims["iss"] != "Google" or access_token != f"ya29.{self.vendor.counter}":
                raise ValueError("another access token")
        return AcceptedToken(claims["sub"], float(claims["exp"]))
