"""Which provider of tokens the settings choose: names, functions, and the properties of Java's libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kclient import azure_tokens, load, msk_iam_tokens
from kclient.config import Config
from kclient.config.cloud import IAM, IAM_LOGIN_MODULE
from kclient.errors import ConfigError
from kclient.security.cloud_tokens import AzureTokens, GcpTokens, MskIamTokens
from kclient.spark.kafka_keys import KafkaKeys
from tests.security.tokens import jwt
from tests.security.vendor_endpoints import ROLE, without_credentials

MSK = "b-1.demo.abc123.c2.kafka.eu-central-1.amazonaws.com:9098"
EVENT_HUBS = "orders.servicebus.windows.net:9093"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
IAM_CLIENT_HANDLER = f"{IAM}.IAMClientCallbackHandler"
OAUTH_HANDLER = f"{IAM}.IAMOAuthBearerLoginCallbackHandler"
GCP_HANDLER = "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler"
FUNCTION = f"{jwt.__module__}:jwt"


class AiokafkasProvider:
    """What kafka-python and aiokafka take."""

    async def token(self) -> str:
        return jwt()


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_credentials(monkeypatch, tmp_path)


def config(servers: str = MSK, **keys: Any) -> Config:
    return load(
        {
            "bootstrap_servers": servers,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "OAUTHBEARER",
            **keys,
        }
    )


def problem(servers: str = MSK, **keys: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        config(servers, **keys)
    assert "canary" not in str(caught.value)
    (found,) = caught.value.problems
    return found


def of_file(path: Path, text: str) -> Config:
    path.write_text(f"bootstrap.servers={MSK}\nsecurity.protocol=SASL_SSL\n{text}")
    return load({}, properties=path)


@pytest.mark.parametrize("name", ["aws_msk_iam", "AWS_MSK_IAM"])
def test_a_name_is_the_provider_for_this_cluster(name: str) -> None:
    assert config(sasl_oauth_token_provider=name).sasl_oauth_token_provider == MskIamTokens(
        region="eu-central-1"
    )


def test_every_vendor_has_a_name() -> None:
    azure = config(EVENT_HUBS, sasl_oauth_token_provider="azure").sasl_oauth_token_provider
    assert azure == AzureTokens(scope="https://orders.servicebus.windows.net/.default")
    assert config(sasl_oauth_token_provider="gcp").sasl_oauth_token_provider == GcpTokens()


def test_the_function_for_python_keeps_its_parameters() -> None:
    aws = config(sasl_oauth_token_provider=msk_iam_tokens(region="us-east-1", role_arn=ROLE))
    assert aws.sasl_oauth_token_provider == MskIamTokens(region="us-east-1", role_arn=ROLE)
    kept = azure_tokens(scope="api://kafka/.default", extensions={"logicalCluster": "lkc-1"})
    assert config(sasl_oauth_token_provider=kept).sasl_oauth_token_provider == kept


def test_azure_takes_scope_and_extensions_of_the_settings() -> None:
    found = config(
        "kafka.example.com:9093",
        sasl_oauth_token_provider="azure",
        sasl_oauthbearer_scope="api://kafka/.default",
        sasl_jaas_config=f'{OAUTH_MODULE} required extension_logicalCluster="lkc-1";',
    )
    expected = AzureTokens(scope="api://kafka/.default", extensions={"logicalCluster": "lkc-1"})
    assert found.sasl_oauth_token_provider == expected


def test_a_function_of_the_user_is_named_and_imported() -> None:
    assert config(sasl_oauth_token_provider=FUNCTION).sasl_oauth_token_provider is jwt


@pytest.mark.parametrize("prefix", ["", "shadedmskiam."])
def test_the_properties_of_aws_msk_iam_auth_work_as_they_are(tmp_path: Path, prefix: str) -> None:
    options = (
        f'awsRoleArn="{ROLE}" awsRoleSessionName="billing" awsStsRegion="eu-west-1" awsDebugCreds="true"'
    )
    found = of_file(
        tmp_path / "client.properties",
        f"sasl.mechanism=AWS_MSK_IAM\n"
        f"sasl.jaas.config={prefix}{IAM_LOGIN_MODULE} required {options};\n"
        f"sasl.client.callback.handler.class={prefix}{IAM_CLIENT_HANDLER}\n",
    )
    assert found.sasl_mechanism == "OAUTHBEARER"
    assert found.sasl_oauth_token_provider == MskIamTokens(
        region="eu-central-1", role_arn=ROLE, role_session_name="billing", sts_region="eu-west-1"
    )


def test_the_oauthbearer_handler_of_aws_msk_iam_auth(tmp_path: Path) -> None:
    found = of_file(
        tmp_path / "client.properties",
        f'sasl.mechanism=OAUTHBEARER\nsasl.jaas.config={OAUTH_MODULE} required awsProfileName="reader";\n'
        f"sasl.login.callback.handler.class={OAUTH_HANDLER}\n",
    )
    assert found.sasl_oauth_token_provider == MskIamTokens(region="eu-central-1", profile="reader")


def test_the_handler_of_google(tmp_path: Path) -> None:
    found = of_file(
        tmp_path / "client.properties",
        f"sasl.mechanism=OAUTHBEARER\nsasl.jaas.config={OAUTH_MODULE} required;\n"
        f"sasl.login.callback.handler.class={GCP_HANDLER}\n",
    )
    assert found.sasl_oauth_token_provider == GcpTokens()


def test_keys_of_a_role_are_secrets() -> None:
    options = 'awsRoleAccessKeyId="AKIA" awsRoleSecretAccessKey="canary" awsRoleSessionToken="canary"'
    entry = f'{IAM_LOGIN_MODULE} required awsRoleArn="{ROLE}" {options};'
    found = config(sasl_mechanism="AWS_MSK_IAM", sasl_jaas_config=entry)
    provider = found.sasl_oauth_token_provider
    assert isinstance(provider, MskIamTokens)
    assert provider.keys is not None
    assert (provider.keys.access_key, provider.keys.secret_key) == ("AKIA", "canary")
    assert "canary" not in f"{found!r} {found.explain()}"


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (
            {"sasl_mechanism": "AWS_MSK_IAM"},
            "write sasl_mechanism=OAUTHBEARER and sasl_oauth_token_provider=aws_msk_iam",
        ),
        (
            {"sasl_mechanism": "AWS_MSK_IAM", "sasl_jaas_config": f"{OAUTH_MODULE} required;"},
            f"must name {IAM_LOGIN_MODULE} for AWS_MSK_IAM; it names {OAUTH_MODULE}",
        ),
        (
            {"sasl_mechanism": "AWS_MSK_IAM", "sasl_jaas_config": f"{IAM_LOGIN_MODULE} required canary=1;"},
            "has an option (not shown), which aws_msk_iam does not know",
        ),
        (
            {
                "sasl_mechanism": "AWS_MSK_IAM",
                "sasl_jaas_config": f'{IAM_LOGIN_MODULE} required awsProfileName="a" awsRoleArn="b";',
            },
            "Java uses the profile alone; keep one",
        ),
        (
            {
                "sasl_mechanism": "AWS_MSK_IAM",
                "sasl_jaas_config": f'{IAM_LOGIN_MODULE} required awsRoleSecretAccessKey="canary";',
            },
            "must hold both awsRoleAccessKeyId and awsRoleSecretAccessKey, or neither",
        ),
        (
            {"sasl_client_callback_handler_class": "com.example.Handler", "sasl_oauth_token_provider": jwt},
            "it names a Java class; give",
        ),
        (
            {"sasl_login_callback_handler_class": "com.example.Handler"},
            "is a Java class that kclient does not have",
        ),
        (
            {"sasl_oauth_token_provider": "gcp", "sasl_oauthbearer_scope": "kafka"},
            "sasl_oauthbearer_scope would do nothing: the tokens are those of gcp",
        ),
        (
            {"sasl_oauth_token_provider": "aws_msk_iam", "security_protocol": "SASL_PLAINTEXT"},
            "OAUTHBEARER over SASL_PLAINTEXT sends the token for everyone to read",
        ),
        (
            {"sasl_oauth_token_provider": "aws"},
            "must be aws_msk_iam, azure, gcp, a function, or the name of one as package.module:function",
        ),
        ({"sasl_oauth_token_provider": "nowhere:token"}, "cannot be imported (No module named 'nowhere')"),
        ({"sasl_oauth_token_provider": ":token"}, "cannot be imported"),
        ({"sasl_oauth_token_provider": "os:nothing"}, "has no attribute 'nothing'"),
        ({"sasl_oauth_token_provider": "os:name"}, "which is a str and no function"),
        ({"sasl_oauth_token_provider": AiokafkasProvider()}, "give its method token"),
        ({"oauth_cb": jwt}, "kclient's own is sasl_oauth_token_provider, a function without parameters"),
        ({"sasl_oauth_token_provider": 5}, "must be a function that returns an OAuthToken"),
    ],
)
def test_what_is_wrong_is_answered_with_what_to_write(keys: dict[str, Any], text: str) -> None:
    assert text in problem(**keys)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("aws_msk_iam", "needs the region of the cluster, which the names in bootstrap_servers do not say"),
        ("azure", "needs a scope, which the names in bootstrap_servers do not say"),
    ],
)
def test_a_name_that_does_not_say_it_needs_the_setting(name: str, text: str) -> None:
    assert text in problem("kafka.example.com:9098", sasl_oauth_token_provider=name)


def test_spark_options_make_the_provider_where_the_connection_is_made() -> None:
    options = {
        "kafka.bootstrap.servers": MSK,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "OAUTHBEARER",
    }
    for name, provider in (("aws_msk_iam", MskIamTokens(region="eu-central-1")), (FUNCTION, jwt)):
        keys = KafkaKeys.of({**options, "kafka.sasl.oauth.token.provider": name})
        assert keys.problems() == []
        assert keys.config("reader").sasl_oauth_token_provider == provider
    wrong = KafkaKeys.of({**options, "kafka.sasl.mechanism": "AWS_MSK_IAM"})
    assert "sasl_oauth_token_provider=aws_msk_iam" in wrong.problems()[0]


@pytest.mark.parametrize(
    ("mechanism", "module", "more"),
    [
        ("AWS_MSK_IAM", IAM_LOGIN_MODULE, {}),
        ("OAUTHBEARER", OAUTH_MODULE, {"kafka.sasl.oauth.token.provider": "aws_msk_iam"}),
        ("OAUTHBEARER", OAUTH_MODULE, {"kafka.sasl.login.callback.handler.class": OAUTH_HANDLER}),
    ],
)
def test_a_jaas_entry_by_reference_is_resolved_where_the_connection_is_made(
    monkeypatch: pytest.MonkeyPatch, mechanism: str, module: str, more: dict[str, str]
) -> None:
    options = {
        "kafka.bootstrap.servers": MSK,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config.env": "KAFKA_JAAS",
        **more,
    }
    keys = KafkaKeys.of(options)
    assert keys.problems() == []
    monkeypatch.setenv("KAFKA_JAAS", f'{module} required awsProfileName="reader";')
    provider = keys.config("reader").sasl_oauth_token_provider
    assert provider == MskIamTokens(region="eu-central-1", profile="reader")


def test_a_jaas_entry_of_java_is_read_by_spark_too() -> None:
    options = {
        "kafka.bootstrap.servers": MSK,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "AWS_MSK_IAM",
        "kafka.sasl.jaas.config": f'shadedmskiam.{IAM_LOGIN_MODULE} required awsProfileName="reader";',
        "kafka.sasl.client.callback.handler.class": f"shadedmskiam.{IAM_CLIENT_HANDLER}",
    }
    keys = KafkaKeys.of(options)
    assert keys.problems() == []
    assert keys.config("reader").sasl_oauth_token_provider == MskIamTokens(
        region="eu-central-1", profile="reader"
    )
