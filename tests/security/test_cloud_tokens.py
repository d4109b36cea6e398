"""The vendors' tokens, each from the vendor's own library, with stand-ins of the endpoints that it asks."""

from __future__ import annotations

import base64
import importlib.util
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kclient import Consumer, OAuthToken, TopicPartition, azure_tokens, gcp_tokens, msk_iam_tokens
from kclient.config.cloud import IAM_LOGIN_MODULE
from kclient.embedded import EmbeddedCluster, Listener
from kclient.errors import AuthenticationError
from kclient.security.cloud_tokens import CloudTokens, event_hubs_scope, failure_of, msk_region
from kclient.security.oauthbearer import TokenError, claims_of, unsecured_token
from tests.security.vendor_endpoints import (
    ACCOUNT,
    LIFETIME,
    ROLE,
    Vendor,
    VendorBrokers,
    without_credentials,
)
from tests.security.vendor_endpoints import vendor as vendor_on_loopback

REGION = "eu-central-1"
BROKER = f"b-1.demo.abc123.c2.kafka.{REGION}.amazonaws.com"
NAMESPACE = "orders.servicebus.windows.net"
KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


@pytest.fixture
def vendor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Vendor]:
    """The endpoints; nothing else on this machine has a credential."""
    without_credentials(monkeypatch, tmp_path)
    with vendor_on_loopback() as running:
        yield running


@pytest.fixture
def container(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> Vendor:
    """AWS, in a container with a role, as ECS and EKS have it."""
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{vendor.url}/credentials")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "pod-token")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", vendor.url)
    return vendor


@pytest.fixture
def app_service(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> Vendor:
    """Azure, in an application with a managed identity."""
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{vendor.url}/msi")
    monkeypatch.setenv("IDENTITY_HEADER", "identity-secret-of-the-app")
    return vendor


@pytest.fixture
def machine(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> Vendor:
    """Google, on a virtual machine with a service account."""
    from google.auth.compute_engine import _metadata

    # The library reads GCE_METADATA_HOST when it is imported, which another test may have done.
    host = vendor.url.removeprefix("http://")
    monkeypatch.setattr(_metadata, "_GCE_METADATA_HOST", host)
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", False, raising=False)
    monkeypatch.setenv("GCE_METADATA_IP", host)
    return vendor


def failure(provider: CloudTokens) -> str:
    with pytest.raises(TokenError) as caught:
        provider()
    assert caught.value.__suppress_context__, "the frames of a library hold secrets in their variables"
    return str(caught.value)


# --- AWS


def msk(**parameters: Any) -> CloudTokens:
    return msk_iam_tokens(**parameters).for_cluster([BROKER])


def test_a_container_signs_with_the_credentials_of_its_role(container: Vendor) -> None:
    token = msk()()
    assert container.check_signed_url(token.value, REGION) == token.principal == "ASIA0000000000000001"
    assert 895 < token.expires_at - time.time() <= 900
    assert token.issued_at == token.expires_at - 900


def test_credentials_are_looked_up_for_each_token(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    provider, used = msk(), []
    for key in (KEY, "AKIAI44QH8DHBEXAMPLE"):
        vendor.keys[key] = SECRET
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        used.append(vendor.check_signed_url(provider().value, REGION))
    assert used == [KEY, "AKIAI44QH8DHBEXAMPLE"]


def test_a_profile_has_its_own_credentials(vendor: Vendor, tmp_path: Path) -> None:
    vendor.keys[KEY] = SECRET
    text = f"[reader]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    (tmp_path / "aws-credentials").write_text(text)
    assert vendor.check_signed_url(msk(profile="reader")().value, REGION) == KEY
    assert "ProfileNotFound: The config profile (nobody)" in failure(msk(profile="nobody"))


def test_a_role_is_assumed_at_sts(container: Vendor) -> None:
    token = msk(role_arn=ROLE, role_session_name="billing", external_id="partner")()
    assert container.requests == ["/credentials", f"AssumeRole {ROLE} billing partner"]
    assert container.check_signed_url(token.value, REGION) == "ASIA0000000000000002"
    assert token.principal == ROLE


def test_a_role_that_may_not_be_assumed_is_named(container: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    container.refuses = True
    text = failure(msk(role_arn=ROLE))
    assert text.startswith("sasl_oauth_token_provider=aws_msk_iam failed with ClientError: ")
    assert f"is not authorized to perform: sts:AssumeRole on resource: {ROLE}" in text


def test_no_credentials_at_all(vendor: Vendor) -> None:
    assert "no AWS credentials were found; set AWS_ACCESS_KEY_ID" in failure(msk())


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (BROKER, REGION),
        ("B-1-PUBLIC.demo.abc123.c2.kafka.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("boot-abc123.c3.kafka-serverless.ap-southeast-2.amazonaws.com", "ap-southeast-2"),
        ("b-2.demo.abc123.c2.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("kafka.example.com", None),
        ("b-1.demo.abc123.c2.kafka.eu-central-1.amazonaws.com.example.com", None),
    ],
)
def test_the_region_is_in_the_brokers_name(host: str, region: str | None) -> None:
    assert msk_region(["10.0.0.1", host]) == region


def test_the_region_comes_from_the_settings_the_name_or_the_environment(
    vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def region(host: str, **parameters: Any) -> str | None:
        return msk_iam_tokens(**parameters).for_cluster([host]).region

    with pytest.raises(ValueError, match="needs the region of the cluster"):
        region("kafka.example.com")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert region("kafka.example.com") == "eu-west-1"
    monkeypatch.setenv("AWS_REGION", "eu-west-2")
    assert region("kafka.example.com") == "eu-west-2"
    assert region(BROKER) == REGION
    assert region(BROKER, region="us-east-1") == "us-east-1"


# --- Azure


def event_hubs(**parameters: Any) -> CloudTokens:
    return azure_tokens(**parameters).for_cluster([NAMESPACE])


def test_a_managed_identity_gets_a_token_for_the_namespace(app_service: Vendor) -> None:
    token = event_hubs()()
    assert app_service.requests == [f"/msi?api-version=2019-08-01&resource=https://{NAMESPACE}"]
    assert claims_of(token.value)["aud"] == f"https://{NAMESPACE}"
    assert 0 <= time.time() + LIFETIME - token.expires_at < 5
    assert (token.principal, token.scope) == ("4f9c", f"https://{NAMESPACE}/.default")


def test_no_identity_says_what_was_tried(app_service: Vendor) -> None:
    app_service.refuses = True
    text = failure(event_hubs())
    assert text.startswith("sasl_oauth_token_provider=azure failed with ClientAuthenticationError: ")
    assert "DefaultAzureCredential failed to retrieve a token from the included credentials" in text
    assert "EnvironmentCredential" in text
    assert "No User Assigned or Delegated Managed Identity found" in text
    assert len(text) < 1_200


def test_a_credential_of_the_user_may_give_opaque_tokens() -> None:
    @attrs.frozen
    class Found:
        token: str = "opaque"
        expires_on: int = 4_000_000_000

    class Credential:
        def get_token(self, *scopes: str) -> Found:
            assert scopes == ("api://kafka/.default",)
            return Found()

    extensions = {"logicalCluster": "lkc-1"}
    provider = event_hubs(scope="api://kafka/.default", credential=Credential(), extensions=extensions)
    token = provider()
    assert (token.value, token.expires_at, token.principal) == ("opaque", 4_000_000_000, "")
    assert token.extensions == extensions


def test_the_scope_is_that_of_the_namespace() -> None:
    assert event_hubs_scope(["10.0.0.1", NAMESPACE.upper()]) == f"https://{NAMESPACE}/.default"
    china = "orders.servicebus.chinacloudapi.cn"
    assert event_hubs_scope([china]) == f"https://{china}/.default"
    assert event_hubs_scope(["kafka.example.com"]) is None
    given = azure_tokens(scope="api://mine/.default").for_cluster([NAMESPACE], "api://settings/.default")
    assert given.scope == "api://mine/.default"
    assert (
        azure_tokens().for_cluster([NAMESPACE], "api://settings/.default").scope == "api://settings/.default"
    )
    with pytest.raises(ValueError, match="needs a scope"):
        azure_tokens().for_cluster(["kafka.example.com"])


# --- Google


def managed_kafka(**parameters: Any) -> CloudTokens:
    return gcp_tokens(**parameters).for_cluster(
        ["bootstrap.demo.europe-west3.managedkafka.project.cloud.goog"]
    )


def opened(token: OAuthToken) -> tuple[dict[str, Any], dict[str, Any], str]:
    """The three parts of Google's envelope."""
    header, claims, access_token = (
        base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode() for part in token.value.split(".")
    )
    assert "=" not in token.value
    return json.loads(header), json.loads(claims), access_token


def test_a_machine_gets_a_token_of_its_service_account(machine: Vendor) -> None:
    provider = managed_kafka()
    token = provider()
    header, claims, access_token = opened(token)
    assert header == {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
    assert (claims["sub"], claims["iss"], claims["scope"]) == (ACCOUNT, "Google", "kafka")
    assert abs(claims["iat"] - time.time()) < 5
    assert claims["exp"] == int(token.expires_at)
    assert 0 <= time.time() + LIFETIME - token.expires_at < 5
    assert (access_token, token.principal) == ("ya29.1", ACCOUNT)
    assert opened(provider())[2] == "ya29.2"


def test_a_key_file_of_a_service_account(
    vendor: Vendor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = rsa.generate_private_key(65_537, 2_048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    account = {"type": "service_account", "client_email": ACCOUNT, "private_key": pem}
    (tmp_path / "key.json").write_text(json.dumps({**account, "token_uri": f"{vendor.url}/token"}))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    token = managed_kafka()()
    assert opened(token)[2] == "ya29.1"
    assert token.principal == ACCOUNT
    vendor.refuses = True
    text = failure(managed_kafka())
    assert text.startswith("sasl_oauth_token_provider=gcp failed with RefreshError: ")
    assert "invalid_grant: Invalid JWT Signature." in text


def test_no_credentials_of_google(vendor: Vendor) -> None:
    assert "Your default credentials were not found" in failure(managed_kafka())


def test_a_user_who_has_logged_in_is_named_by_the_id_token() -> None:
    from datetime import datetime

    class Credentials:
        token = "ya29.x"
        expiry = datetime(2096, 10, 2, 7, 6, 40)  # naive, in UTC
        id_token: str | None = None

        def refresh(self, request: object) -> None:
            """Nothing to do."""

    credentials = Credentials()
    assert "the credentials name no account" in failure(managed_kafka(credentials=credentials))
    assert (
        managed_kafka(credentials=credentials, principal="eva@example.com")().principal == "eva@example.com"
    )
    credentials.id_token = unsecured_token({"email": "ada@example.com"})
    token = managed_kafka(credentials=credentials)()
    assert (token.principal, token.expires_at) == ("ada@example.com", 4_000_000_000)


# --- all of them


@pytest.mark.parametrize(
    ("provider", "package", "extra"),
    [
        (msk_iam_tokens(), "aws-msk-iam-sasl-signer-python", "aws"),
        (azure_tokens(), "azure-identity", "azure"),
        (gcp_tokens(), "google-auth", "gcp"),
    ],
)
def test_a_library_that_is_not_installed_is_named_with_the_command(
    monkeypatch: pytest.MonkeyPatch, provider: CloudTokens, package: str, extra: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ValueError, match=package) as caught:
        provider.for_cluster([BROKER])
    assert f"pip install 'kclient-kafka[{extra}]'" in str(caught.value)


def test_a_failure_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "8Q~short/secret")
    long = unsecured_token({"sub": "x" * 40})
    found = failure_of("azure", RuntimeError(f"tried {SECRET}\nand 8Q~short/secret\tand {long} \x1b[31m"))
    text = str(found)
    assert text.startswith("sasl_oauth_token_provider=azure failed with RuntimeError: tried *** and *** and ")
    for part in (SECRET, "8Q~short", long.split(".")[1], "\x1b"):
        assert part not in text


# --- against brokers


@pytest.mark.parametrize(
    ("settings", "principal"),
    [
        ({"sasl_mechanism": "AWS_MSK_IAM", "sasl_jaas_config": f"{IAM_LOGIN_MODULE} required;"}, "ASIA"),
        ({"sasl_oauth_token_provider": "aws_msk_iam"}, "ASIA"),
        ({"sasl_oauth_token_provider": "azure", "sasl_oauthbearer_scope": "api://kafka/.default"}, "4f9c"),
        ({"sasl_oauth_token_provider": "gcp"}, ACCOUNT),
    ],
    ids=["Java's AWS_MSK_IAM", "aws_msk_iam", "azure", "gcp"],
)
def test_brokers_accept_the_tokens(
    container: Vendor,
    app_service: Vendor,
    machine: Vendor,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    principal: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("AWS_REGION", REGION)
    brokers = VendorBrokers(vendor=container, region=REGION)
    listeners = [Listener("SASL_PLAINTEXT", mechanisms=("OAUTHBEARER",))]
    with EmbeddedCluster(topics={"orders": 1}, listeners=listeners, oauth=brokers) as cluster:
        cluster.produce("orders", [b"a", b"b"])
        with caplog.at_level(1, "kclient"), consumer(cluster, **settings) as reader:
            reader.assign([TopicPartition("orders", 0)])
            assert [record.value for record in reader.poll(5.0)] == [b"a", b"b"]
    (line,) = (line for line in caplog.messages if line.startswith("a token of"))
    assert line.startswith(f"a token of {principal}")
    for secret in (*container.keys.values(), "identity-secret-of-the-app", "ya29.", "session-ASIA"):
        assert secret not in caplog.text


def test_a_refused_token_is_answered_with_the_right_that_it_needs(container: Vendor) -> None:
    listeners = [Listener("SASL_PLAINTEXT", mechanisms=("OAUTHBEARER",))]
    with EmbeddedCluster(topics={"orders": 1}, listeners=listeners) as cluster:
        provider = msk_iam_tokens(region=REGION)
        with (
            consumer(cluster, sasl_oauth_token_provider=provider) as reader,
            pytest.raises(AuthenticationError, match="Allow kafka-cluster:Connect on this cluster"),
        ):
            reader.list_topics(timeout=5.0)


def test_a_vendor_that_gives_no_token_is_an_authentication_error(container: Vendor) -> None:
    listeners = [Listener("SASL_PLAINTEXT", mechanisms=("OAUTHBEARER",))]
    with EmbeddedCluster(topics={"orders": 1}, listeners=listeners) as cluster:
        provider = msk_iam_tokens(region=REGION, profile="nobody")
        with (
            consumer(cluster, sasl_oauth_token_provider=provider) as reader,
            pytest.raises(AuthenticationError) as caught,
        ):
            reader.list_topics(timeout=5.0)
    text = "sasl_oauth_token_provider=aws_msk_iam failed with ProfileNotFound: The config profile (nobody)"
    assert text in caught.value.text
    assert "Nothing was sent to the broker" in caught.value.text


def consumer(cluster: EmbeddedCluster, **keys: Any) -> Consumer:
    given = {"sasl_mechanism": "OAUTHBEARER", **keys}
    return Consumer(
        bootstrap_servers=cluster.servers("SASL_PLAINTEXT"),
        security_protocol="SASL_PLAINTEXT",
        allow_plaintext_credentials=True,
        auto_offset_reset="earliest",
        **given,
    )
