"""The clients of Java, librdkafka and kclient with tokens of one authorization server, which a real Kafka checks.

One `client.properties` serves Java and kclient, and both send the same requests for tokens.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Any

import pytest

from kclient import Consumer
from kclient.security.oauthbearer import claims_of, header_of
from tests.embedded.test_java_clients import TOOLS, run
from tests.kafka.member_processes import Team
from tests.kafka.other_clients import produce_numbers
from tests.security.authorization_server import HttpRequest
from tests.security.conftest import RECORDS, TOPIC
from tests.security.oauth_kafka import CLIENT, MODULE, PACKAGE, SECRET, OAuthKafka, allowed
from tests.security.signed_tokens import SigningKey, ec_key, rsa_key

pytestmark = pytest.mark.kafka

PARTITIONS = 8
WAVE = 80
WAVES = 12
LIFETIME = 8.0
LIBRDKAFKA = "librdkafka"  # which sends no User-Agent


def settings_of(oauth: OAuthKafka, kind: str) -> dict[str, Any]:
    """Java's and ours are the same."""
    if kind == "confluent":
        return oauth.of_librdkafka
    java = {"jvm.options": allowed(oauth.server.token_url)} if kind == "java" else {}
    return {**oauth.client_credentials, **java}


@pytest.mark.slow
@pytest.mark.spec("B.1.3", "B.4.12", "B.13.4")
def test_four_clients_in_one_group_read_each_record_once(oauth_kafka: OAuthKafka, fresh_name: str) -> None:
    """Their tokens live eight seconds and the reading takes longer, so each client renews its token and its session."""
    kafka, server = oauth_kafka.kafka, oauth_kafka.server
    kafka.create_topic(fresh_name, PARTITIONS)
    server.lifetime, asked, logged = LIFETIME, len(server.requests), len(kafka.log_tail(1, 1 << 30))
    try:
        with Team(kafka, fresh_name, fresh_name) as team:
            kinds = ("java", "confluent", "sync", "async")
            members = [team.start(kind, kind, **settings_of(oauth_kafka, kind)) for kind in kinds]
            team.wait_until_shared(members, PARTITIONS)
            for wave in range(WAVES):
                produce_numbers(kafka, fresh_name, range(wave * WAVE, (wave + 1) * WAVE), PARTITIONS)
                time.sleep(1.0)
            team.wait_until_seen(range(WAVES * WAVE))
            for member in members:
                member.close()
    finally:
        server.lifetime = 60.0
    assert set(team.seen().values()) == {1}
    assert all(member.numbers for member in members)
    assert not any(member.has_reported("lost") for member in members)
    for member in members[2:]:
        assert "WARNING" not in member.errors
    assert "Could not validate the access token" not in kafka.log_tail(1, 1 << 30)[logged:]
    agents = requests_by_agent(server.requests[asked:])
    assert set(agents) == {"Java", "kclient", LIBRDKAFKA}
    assert all(len(requests) >= 2 for requests in agents.values()), agents
    java, ours = agents["Java"][0], agents["kclient"][0]
    for header in ("authorization", "accept", "content-type"):
        assert ours.headers[header] == java.headers[header]
    assert ours.form == java.form == {"grant_type": "client_credentials", "scope": "kafka"}


def requests_by_agent(requests: list[HttpRequest]) -> dict[str, list[HttpRequest]]:
    """The requests for tokens, by the name of the program that sent them."""
    found: dict[str, list[HttpRequest]] = {}
    for request in requests:
        if request.path == "/token":
            agent = request.headers.get("user-agent", LIBRDKAFKA).partition("/")[0]
            found.setdefault(agent, []).append(request)
    return found


def in_jaas(oauth: OAuthKafka, folder: Path) -> dict[str, str]:
    """The client in the JAAS entry, where Java had it until Kafka 4.0, and an extension."""
    entry = (
        f'{MODULE} required clientId="{CLIENT}" clientSecret="{SECRET}" scope="kafka" extension_tenant="a";'
    )
    found = {
        name: text for name, text in oauth.client_credentials.items() if "client.credentials" not in name
    }
    del found["sasl.oauthbearer.scope"]
    return {**found, "sasl.jaas.config": entry}


def url_encoded(oauth: OAuthKafka, folder: Path) -> dict[str, str]:
    """Characters in id and secret that RFC 6749 wants encoded."""
    credentials = "sasl.oauthbearer.client.credentials"
    name, secret = list(oauth.server.clients.items())[1]
    return {
        **oauth.client_credentials,
        f"{credentials}.client.id": name,
        f"{credentials}.client.secret": secret,
        "sasl.oauthbearer.header.urlencode": "true",
        "sasl.oauthbearer.scope": "read write&more",
    }


def assertion(oauth: OAuthKafka, folder: Path, key: SigningKey, **others: str) -> dict[str, str]:
    """The keys for an assertion that the client signs."""
    prefix = "sasl.oauthbearer.assertion"
    pem = folder / "client.key"
    pem.write_text(key.private_pem())
    claims = {"claim.iss": "reader", "claim.sub": "alice", "claim.aud": oauth.server.token_url}
    found = {"algorithm": key.algorithm, "private.key.file": str(pem), **claims, **others}
    keys = {f"{prefix}.{name}": text for name, text in found.items()}
    login = {
        name: text for name, text in oauth.client_credentials.items() if "client.credentials" not in name
    }
    return {**login, **keys}


def client_assertion(oauth: OAuthKafka, folder: Path) -> dict[str, str]:
    """An assertion in place of the secret (KIP-1258)."""
    name = {"sasl.oauthbearer.client.credentials.client.id": CLIENT}
    return assertion(oauth, folder, ec_key("client")) | name


def jwt_bearer(oauth: OAuthKafka, folder: Path) -> dict[str, str]:
    """An assertion as the grant (KIP-1139), with a template."""
    template = folder / "template.json"
    template.write_text('{"header": {"kid": "client"}, "payload": {"tenant": "a", "sub": "bob"}}')
    others = {"template.file": str(template), "claim.jti.include": "true"}
    retriever = {"sasl.oauthbearer.jwt.retriever.class": f"{PACKAGE}.JwtBearerJwtRetriever"}
    return assertion(oauth, folder, rsa_key("client"), **others) | retriever


def assertion_file(oauth: OAuthKafka, folder: Path) -> dict[str, str]:
    """An assertion that another program has written."""
    now = int(time.time())
    claims = {"iss": "reader", "sub": "alice", "aud": oauth.server.token_url, "iat": now, "exp": now + 300}
    path = folder / "assertion.jwt"
    path.write_text(rsa_key("client").sign(claims))
    return {
        **{name: text for name, text in oauth.client_credentials.items() if "client.credentials" not in name},
        "sasl.oauthbearer.jwt.retriever.class": f"{PACKAGE}.JwtBearerJwtRetriever",
        "sasl.oauthbearer.assertion.file": str(path),
    }


def token_file(oauth: OAuthKafka, folder: Path) -> dict[str, str]:
    """A token that something else renews."""
    path = folder / "token.jwt"
    path.write_text(oauth.server.sign({"sub": "alice"}, lifetime=300))
    found = {
        name: text
        for name, text in oauth.client_credentials.items()
        if "client.credentials" not in name and not name.endswith("scope")
    }
    return {**found, "sasl.oauthbearer.token.endpoint.url": path.as_uri()}


SOURCES = [in_jaas, url_encoded, client_assertion, jwt_bearer, assertion_file, token_file]


@pytest.mark.spec("B.1.3", "B.4.12")
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_java_and_we_read_with_the_same_properties(
    oauth_kafka: OAuthKafka, tmp_path: Path, source: Any
) -> None:
    server, properties = oauth_kafka.server, tmp_path / "client.properties"
    keys = source(oauth_kafka, tmp_path)
    # Java reads the file as ISO-8859-1.
    text = "\n".join(f"{name}={value}" for name, value in keys.items())
    properties.write_text(text.encode("ascii", "backslashreplace").decode().replace("\\x", "\\u00"))
    asked = len(server.token_requests())
    wanted = ("--topic", TOPIC, "--num-records", str(RECORDS), "--group", f"java-{secrets.token_hex(4)}")
    files = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.files={','.join(map(str, tmp_path.iterdir()))}"
    urls = allowed(server.token_url, keys["sasl.oauthbearer.token.endpoint.url"])
    where = ("--bootstrap-server", oauth_kafka.at(), "--command-config", str(properties))
    table = run(f"{TOOLS}.ConsumerPerformance", *where, *wanted, "--timeout", "20000", options=[urls, files])
    assert f" {RECORDS}, " in table
    java = server.token_requests()[asked:]
    with Consumer(
        TOPIC, properties=properties, group_id=f"ours-{secrets.token_hex(4)}", auto_offset_reset="earliest"
    ) as consumer:
        found = 0
        while found < RECORDS and (records := consumer.poll(timeout=10.0)):
            found += len(records)
    ours = server.token_requests()[asked + len(java) :]
    assert found == RECORDS
    assert [comparable(request) for request in ours] == [comparable(request) for request in java[:1]]
    assert len(ours) == (0 if source is token_file else 1)


def comparable(request: HttpRequest) -> dict[str, Any]:
    """What both clients have to send alike: instead of an assertion its header and the claims that are no times."""
    found: dict[str, Any] = {
        name: request.headers.get(name) for name in ("authorization", "accept", "content-type")
    }
    for name, value in request.form.items():
        found[name] = value
        if name in ("assertion", "client_assertion"):
            claims = claims_of(value)
            lifetime = claims["exp"] - claims["iat"], claims["iat"] - claims.get("nbf", claims["iat"])
            unique = {claim: "…" for claim in ("exp", "iat", "nbf", "jti") if claim in claims}
            found[name] = (header_of(value), claims | unique, lifetime)
    return found
