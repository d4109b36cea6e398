"""docs/security-recipes.md: each recipe says the same in Python, in a file and for Spark; its answers are kclient's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kclient
from kclient.cli.options import ConnectionOptions
from kclient.config import Config, load
from kclient.config.oauth import JaasOptions
from kclient.errors import ConfigError
from kclient.network import errors, sasl, tls, token_endpoint
from kclient.network.peer import Peer
from kclient.network.token_source import COMPARE
from kclient.security import cloud_tokens
from kclient.security.cloud_tokens import AzureTokens, GcpTokens, MskIamTokens
from kclient.security.jaas import parse_jaas
from kclient.spark.options import SourceOptions
from tests.docs.blocks import python_blocks
from tests.docs.test_security import PAGE as SECURITY
from tests.security.certificates import Authority
from tests.security.vendor_endpoints import without_credentials

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security-recipes.md").read_text(encoding="utf-8")
SECTIONS = dict(section.split("\n", 1) for section in PAGE.split("\n## ")[1:])
RECIPES = {title: text for title, text in SECTIONS.items() if title != "Tokens of a cloud"}
MISTAKES = re.compile(r"^\| (?!mistake|---)(.*) \| `(.*)` \|$", re.MULTILINE)
CONNECTION_STRING = (
    "Endpoint=sb://NAMESPACE.servicebus.windows.net/;SharedAccessKeyName=reader;SharedAccessKey=a2V5"
)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the files that the page names."""
    without_credentials(monkeypatch, tmp_path)
    authority = Authority()
    authority.write_pem(tmp_path / "ca.pem")
    authority.write_pem(tmp_path / "client.pem")
    (tmp_path / "kafka").write_text("secret\n")
    monkeypatch.setenv("EVENT_HUBS", CONNECTION_STRING)
    return tmp_path


def here(text: str, place: Path) -> str:
    """The page's text with the files of this directory."""
    return text.replace("/etc/kafka/", f"{place}/").replace("/run/secrets/", f"{place}/")


def of_python(title: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The settings of the block for Python."""
    found: list[Config] = []
    monkeypatch.setattr(kclient, "Consumer", lambda *topics, **keys: found.append(load(keys)), raising=False)
    exec(compile(here(python_blocks(RECIPES[title])[0], place), title, "exec"), {})
    return found[0]


def file_of(title: str, place: Path) -> Path:
    (text,) = re.findall(r"^```properties\n(.*?)^```$", RECIPES[title], re.DOTALL | re.MULTILINE)
    path = place / "client.properties"
    path.write_text(here(text, place))
    return path


def of_spark(title: str, place: Path) -> Config:
    scope: dict[str, Any] = {}
    exec(compile(here(python_blocks(RECIPES[title])[1], place), title, "exec"), scope)
    return SourceOptions.parse({**scope["options"], "subscribe": "orders"}).config("executor")


def essence(config: Config) -> dict[str, Any]:
    """What the settings mean, wherever they are written: in keys or in a JAAS line, as a secret or its reference."""
    oauth = config.sasl_mechanism == "OAUTHBEARER"
    jaas = None if config.sasl_jaas_config is None else parse_jaas(config.sasl_jaas_config.reveal()).options
    options = JaasOptions.of(config.sasl_jaas_config if oauth else None)
    password, secret = config.sasl_password, config.sasl_oauthbearer_client_credentials_client_secret
    return {
        "servers": config.bootstrap_servers,
        "protocol": config.security_protocol,
        "mechanism": config.sasl_mechanism,
        "provider": config.sasl_oauth_token_provider,
        "user": None if oauth else (jaas or {}).get("username") or config.sasl_username,
        "password": None if oauth else (jaas or {}).get("password") or (password and password.reveal()),
        "url": config.sasl_oauthbearer_token_endpoint_url or options.url,
        "client": config.sasl_oauthbearer_client_credentials_client_id or options.client_id,
        "secret": secret.reveal() if secret else options.client_secret,
        "scope": config.sasl_oauthbearer_scope or options.scope,
        "extensions": options.extensions,
        **{name: getattr(config, name) for name in Config.__slots__ if name.startswith("ssl_")},
    }


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_says_the_same_in_every_form(
    title: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = essence(of_python(title, place, monkeypatch))
    assert expected["protocol"] != "PLAINTEXT"
    path = file_of(title, place)
    assert essence(load({}, properties=path)) == expected
    assert essence(ConnectionOptions(properties=str(path)).config()) == expected
    assert essence(of_spark(title, place)) == expected


def test_every_recipe_is_in_the_table_of_judges() -> None:
    linked = set(re.findall(r"\]\(#([a-z-]+)\)", PAGE))
    assert {title.lower().replace(" ", "-") for title in RECIPES} <= linked
    assert "security-recipes.md" in SECURITY


def test_the_functions_have_the_parameters_that_the_page_names() -> None:
    import inspect

    for name in ("msk_iam_tokens", "azure_tokens", "gcp_tokens"):
        (shown,) = set(re.findall(rf"^\|.*`{name}\((.*?)\)`", PAGE, re.MULTILINE))
        assert shown.replace("=…", "").split(", ") == list(
            inspect.signature(getattr(kclient, name)).parameters
        )


# --- the answers to mistakes

BASE = {"bootstrap_servers": "kafka.example.com:9093", "security_protocol": "SASL_SSL"}
OAUTH = {**BASE, "sasl_mechanism": "OAUTHBEARER"}
PLAIN = {**BASE, "sasl_mechanism": "PLAIN"}
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
URL = "sasl_oauthbearer_token_endpoint_url"
CLIENT = "sasl_oauthbearer_client_credentials_client_id"
OF_SETTINGS: list[dict[str, Any]] = [
    {**BASE, "sasl_mechanism": "AWS_MSK_IAM"},
    {**OAUTH, "sasl_oauth_token_provider": "aws_msk_iam"},
    {**OAUTH, "sasl_oauth_token_provider": "azure"},
    {**OAUTH, URL: "https://login.example/token", CLIENT: "billing"},
    {**PLAIN, "sasl_password": "secret"},
    {
        **PLAIN,
        "sasl_jaas_config": f"{PLAIN_MODULE} required username=u password={CONNECTION_STRING};",
    },
    {**BASE, "sasl_mechanisms": "PLAIN"},
    {**BASE, "acks": "all"},
    {**PLAIN, "security_protocol": "PLAINTEXT", "sasl_username": "API_KEY", "sasl_password": "secret"},
    {"bootstrap_servers": "kafka.example.com:9093", "security_protocol": "SSL", "ssl_key_password": "secret"},
]
"""Mistakes that the settings alone show."""

OF_BROKERS: list[tuple[str, str, dict[str, str]]] = [
    ("SCRAM-SHA-256", sasl.MECHANISM_NOT_OFFERED, {"offered": "SCRAM-SHA-512"}),
    ("SCRAM-SHA-512", sasl.MECHANISM_NOT_OFFERED, {"offered": "OAUTHBEARER, AWS_MSK_IAM"}),
    ("PLAIN", sasl.CREDENTIALS_REFUSED, {"code": "SASL_AUTHENTICATION_FAILED (58)"}),
    ("OAUTHBEARER", sasl.BEARER_REFUSED, {"code": "status invalid_token", "token": "", "advice": COMPARE}),
    *(
        ("OAUTHBEARER", sasl.BEARER_REFUSED, {"code": "x", "token": "", "advice": kind.ADVICE})
        for kind in (MskIamTokens, AzureTokens, GcpTokens)
    ),
]
"""Refusals of brokers: the mechanism, the text, and what it names."""

IN_TESTS = ("tests/security/test_cloud_tokens.py",)
"""Tests that see what a vendor's library answers."""


def answers() -> Iterator[str]:
    for keys in OF_SETTINGS:
        with pytest.raises(ConfigError) as caught:
            load(keys)
        yield str(caught.value)
    for mechanism, text, values in OF_BROKERS:
        yield str(sasl.sasl_error(Peer("kafka.example.com", 9093), mechanism, text, **values))
    for module in (tls, errors, cloud_tokens):
        # The texts are literals in several lines.
        yield re.sub(r'" *\n\s*f?"', "", Path(module.__file__ or "").read_text())
    yield Path(token_endpoint.__file__).read_text().replace("{status}", "401")
    for path in IN_TESTS:
        yield (ROOT / path).read_text()


def test_every_answer_to_a_mistake_is_one_of_kclient() -> None:
    given = "\n".join(answers())
    shown = [answer for text in RECIPES.values() for _, answer in MISTAKES.findall(text)]
    assert len(shown) >= 2 * len(RECIPES)
    assert [answer for answer in shown if answer not in given] == []
