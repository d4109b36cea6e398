"""A real Kafka that checks the tokens of OAUTHBEARER by the JWKS of an authorization server, and its clients' settings.

The listener OAUTH expects the audience "kafka" and the server's issuer; OPEN expects neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from localkafka import KafkaCluster
from localkafka.cluster import FAST_START
from tests.security.authorization_server import AuthorizationServer
from tests.security.certificates import Authority
from tests.security.signed_tokens import ec_key, rsa_key
from tests.security.token_cases import SKEW_SECONDS

PACKAGE = "org.apache.kafka.common.security.oauthbearer"
MODULE = f"{PACKAGE}.OAuthBearerLoginModule"
CLIENT, SECRET = "reader", "s3cr+t/of reader=%"
CLIENTS = {CLIENT: SECRET, "müller & söhne": "geh+eim%"}


@attrs.frozen
class OAuthKafka:
    """The cluster, the server whose tokens it accepts, and the file of the authority that issued its certificate."""

    kafka: KafkaCluster
    server: AuthorizationServer
    trusted: Path

    def at(self, listener: str = "OAUTH") -> str:
        """`host:port` of the listener OAUTH or OPEN."""
        host, port = self.kafka.address(1, listener)
        return f"{host}:{port}"

    @property
    def connection(self) -> dict[str, str]:
        """Kafka's keys for the listener OAUTH, without the source of tokens."""
        return {
            "bootstrap.servers": self.at(),
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
            "sasl.mechanism": "OAUTHBEARER",
        }

    @property
    def client_credentials(self) -> dict[str, str]:
        """Kafka's keys for the grant client_credentials, as Java's clients take them."""
        return {
            **self.connection,
            "sasl.jaas.config": f"{MODULE} required;",
            "sasl.login.callback.handler.class": f"{PACKAGE}.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": self.server.token_url,
            "sasl.oauthbearer.client.credentials.client.id": CLIENT,
            "sasl.oauthbearer.client.credentials.client.secret": SECRET,
            "sasl.oauthbearer.scope": "kafka",
        }

    @property
    def of_librdkafka(self) -> dict[str, Any]:
        """The same in librdkafka's keys."""
        return {
            "bootstrap.servers": self.at(),
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.trusted),
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": self.server.token_url,
            "sasl.oauthbearer.client.id": CLIENT,
            "sasl.oauthbearer.client.secret": SECRET,
            "sasl.oauthbearer.scope": "kafka",
        }


def allowed(*urls: str) -> str:
    """The option of a JVM without which Kafka asks no URL for keys or tokens."""
    return f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={','.join(urls)}"


@contextmanager
def running(version: str, folder: Path) -> Iterator[OAuthKafka]:
    """Start the server, then Kafka, which reads the JWKS at its start."""
    authority = Authority("Kafka Test Authority")
    with (
        AuthorizationServer(clients=CLIENTS, assertion_keys=[rsa_key("client"), ec_key("client")]) as server,
        KafkaCluster(
            version,
            overrides=_properties(server, authority, folder),
            listeners={"OAUTH": "SASL_SSL", "OPEN": "SASL_SSL"},
            jvm_options=(*FAST_START, allowed(server.jwks_url)),
        ) as kafka,
    ):
        yield OAuthKafka(kafka, server, authority.write_pem(folder / "ca.pem"))


def _properties(server: AuthorizationServer, authority: Authority, folder: Path) -> dict[str, str]:
    found = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("127.0.0.1").write_pem(folder / "broker.pem")),
    }
    for listener in ("oauth", "open"):
        prefix = f"listener.name.{listener}"
        handler = f"{PACKAGE}.OAuthBearerValidatorCallbackHandler"
        found |= {
            f"{prefix}.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{prefix}.oauthbearer.sasl.jaas.config": f"{MODULE} required;",
            f"{prefix}.oauthbearer.sasl.server.callback.handler.class": handler,
            f"{prefix}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": server.jwks_url,
            f"{prefix}.oauthbearer.sasl.oauthbearer.clock.skew.seconds": str(SKEW_SECONDS),
        }
    expected = "listener.name.oauth.oauthbearer.sasl.oauthbearer.expected"
    return found | {f"{expected}.audience": "kafka", f"{expected}.issuer": server.issuer}
