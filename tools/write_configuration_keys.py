"""Write docs/configuration-keys.md from kclient/config/model.py: `python -m tools.write_configuration_keys`.

The sections are the comments of the table, the meanings the strings below its keys. This module adds the release of
Kafka that a key is of. A test in tests/docs compares the page with the table.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any, Final

import attrs

from kclient.config.model import Config, keys
from tools.write_settings import meanings

FILE: Final = Path(__file__).parents[1] / "docs" / "configuration-keys.md"

HEAD: Final = """# Every configuration key

Written by `python -m tools.write_configuration_keys` from `kclient/config/model.py`, which also checks the values.

Keys may be written with dots or underscores. Times are milliseconds and sizes are bytes unless the name says otherwise.
"Kafka" is the release whose Java client has the key first; keys of kclient itself have none there. All have been in
kclient since 0.1.0. [](configuration.md) explains how to set them, and where their meaning differs from Kafka's.
"""

TITLES: Final = {
    "reaching the cluster": "Reaching the cluster",
    "security": "Security",
    "the group": "The group",
    "records": "Records",
    "metrics": "Metrics",
    "kclient's own keys": "kclient's own keys",
}

LATER: Final = {
    "0.10.0": "sasl_mechanism max_poll_records exclude_internal_topics",
    "0.10.1": "max_poll_interval_ms fetch_max_bytes",
    "0.10.2": "sasl_jaas_config",
    "0.11": "isolation_level reconnect_backoff_max_ms",
    "2.0": "default_api_timeout_ms sasl_login_callback_handler_class sasl_login_refresh_window_factor "
    "sasl_login_refresh_window_jitter sasl_login_refresh_min_period_seconds sasl_login_refresh_buffer_seconds",
    "2.1": "client_dns_lookup",
    "2.3": "group_instance_id allow_auto_create_topics client_rack",
    "2.5": "internal_throw_on_fetch_stable_offset_unsupported",
    "2.7": "socket_connection_setup_timeout_ms socket_connection_setup_timeout_max_ms ssl_truststore_certificates "
    "ssl_keystore_key ssl_keystore_certificate_chain",
    "3.1": "sasl_login_connect_timeout_ms sasl_login_read_timeout_ms sasl_login_retry_backoff_ms "
    "sasl_login_retry_backoff_max_ms sasl_oauthbearer_token_endpoint_url sasl_oauthbearer_scope_claim_name "
    "sasl_oauthbearer_sub_claim_name",
    "3.7": "retry_backoff_max_ms group_protocol group_remote_assignor",
    "3.8": "metadata_recovery_strategy",
    "3.9": "sasl_oauthbearer_header_urlencode",
    "4.0": "metadata_recovery_rebootstrap_trigger_ms",
    "4.1": "sasl_oauthbearer_jwt_retriever_class sasl_oauthbearer_scope "
    "sasl_oauthbearer_client_credentials_client_id "
    "sasl_oauthbearer_client_credentials_client_secret sasl_oauthbearer_assertion_file "
    "sasl_oauthbearer_assertion_private_key_file sasl_oauthbearer_assertion_private_key_passphrase "
    "sasl_oauthbearer_assertion_algorithm sasl_oauthbearer_assertion_template_file "
    "sasl_oauthbearer_assertion_claim_aud sasl_oauthbearer_assertion_claim_iss "
    "sasl_oauthbearer_assertion_claim_sub "
    "sasl_oauthbearer_assertion_claim_exp_seconds sasl_oauthbearer_assertion_claim_nbf_seconds "
    "sasl_oauthbearer_assertion_claim_jti_include",
    "4.4": "bootstrap_resolve_timeout_ms metadata_cluster_check_enable",
}
"""Release of the Java client → the keys that it has first. Kafka's other keys are as old as this consumer, 0.9."""

OWN: Final = frozenset(
    {
        "ssl_context",
        "interceptors",
        "on_decode_error",
        "dead_letters",
        "max_frame_bytes",
        "max_decompressed_batch_bytes",
        "max_headers_per_record",
        "buffer_memory_bytes",
        "missing_topic_timeout_ms",
        "on_no_committed_offset",
        "on_offset_out_of_range",
        "sasl_username",
        "sasl_password",
        "sasl_oauth_token_provider",
        "scram_max_iterations",
        "allow_plaintext_credentials",
        "tls_insecure_skip_verify",
    }
)
"""The keys that are not Kafka's."""

SINCE: Final = {name: release for release, names in LATER.items() for name in names.split()}


def readable(name: str, value: int) -> str:
    """Return a large time or size in its larger unit: 5 min, 50 MiB; nothing where that is no whole number."""
    units = [(60_000, "min"), (1_000, "s")] if name.endswith("_ms") else [(1 << 20, "MiB"), (1 << 10, "KiB")]
    if not name.endswith(("_ms", "_bytes")):
        return ""
    for size, unit in units:
        if value >= size and value % size == 0:
            return f" ({value // size} {unit})"
    return ""


def default(field: attrs.Attribute[Any]) -> str:
    """Return the cell of a key's default."""
    value = field.default
    if value is attrs.NOTHING:
        return "must be given"
    if value is None or value in ("", ()):
        return "–"
    if isinstance(value, tuple):
        value = ",".join(value)
    written = f"`{value if isinstance(value, str) else json.dumps(value)}`"
    if isinstance(value, int) and not isinstance(value, bool):
        return written + readable(field.name, value)
    return written


def sections() -> dict[str, list[str]]:
    """Return the keys below each comment that begins with three hyphens."""
    found: dict[str, list[str]] = {}
    for line in inspect.getsource(Config).splitlines():
        if title := re.match(r"    # --- (.*)", line):
            found[title[1]] = []
        elif (name := re.match(r"    (\w+): .*(?:key\(|attrs\.field\()", line)) and "factory=" not in line:
            next(reversed(found.values())).append(name[1])
    return found


def rendered() -> str:
    """Return the text of the page."""
    means, fields = meanings(), {field.name: field for field in keys()}
    text = HEAD
    for title, names in sections().items():
        text += f"\n## {TITLES[title]}\n\n| key | default | meaning | Kafka |\n|---|---|---|---|\n"
        for name in names:
            since = "" if name in OWN else SINCE.get(name, "0.9")
            text += f"| `{name}` | {default(fields[name])} | {means[name].replace('|', chr(92) + '|')} | {since} |\n"
    return text


if __name__ == "__main__":
    FILE.write_text(rendered())
