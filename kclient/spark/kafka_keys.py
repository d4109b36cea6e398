"""The `kafka.*` options: keys of the client, with secrets by reference, as texts that travel to workers.

    kafka.sasl.password=…            the text itself
    kafka.sasl.password.env=NAME     an environment variable of the process that connects
    kafka.sasl.password.file=/path   a file on the machine that connects

A reference is resolved where a connection is made, again for each one: what Spark pickles and prints holds no
secret, and one that was rotated is used without a new query. Texts become Secrets in the process that connects, which
never leave it; no repr here shows a text that could be one.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from kclient.config import Config, load
from kclient.config.cloud import AWS_MSK_IAM, IAM_LOGIN_MODULE
from kclient.config.errors import config_error
from kclient.config.model import SECRET_KEYS, rules
from kclient.config.oauth import LOGIN_MODULE
from kclient.config.security import PLAIN_MODULE, SCRAM_MODULE
from kclient.errors import ConfigError
from kclient.security.secret import HiddenText, Secret, Source, env, file

PREFIX: Final = "kafka."
DECIDED_BY_SOURCE: Final[Mapping[str, str]] = {
    "auto.offset.reset": "use startingOffsets",
    "key.deserializer": "keys are binary; cast or decode the column key",
    "value.deserializer": "values are binary; cast or decode the column value",
    "enable.auto.commit": "to commit progress to a group give commit.group.id",
    "interceptor.classes": "do the work on the DataFrame",
}
"""`kafka.*` keys that would change what the source itself decides."""

FETCH_BYTES: Final = 8_000_000
REFERENCES: Final[Mapping[str, Callable[[str], Source]]] = {"_env": env, "_file": file}
RETRY: Final = (
    "try again. Each process that connects looks up a reference itself: a variable must be set before that process "
    "starts, with Spark before the session is made; a file must be on its machine"
)
SPELLINGS: Final = {"ssl_ca_location": "ssl_truststore_location"}
"""librdkafka's spelling → Kafka's own, where both mean the same file."""

STAND_INS: Final[Mapping[str, str]] = {
    "PLAIN": f'{PLAIN_MODULE} required username="u" password="p";',
    "OAUTHBEARER": f"{LOGIN_MODULE} required;",
    AWS_MSK_IAM: f"{IAM_LOGIN_MODULE} required;",
}
"""A JAAS entry by mechanism, to check the other keys where the entry is a reference that only a worker resolves."""
OF_AN_ENDPOINT: Final = f'{LOGIN_MODULE} required clientId="u" clientSecret="p";'
"""The same where a token endpoint is given: the client is in the entry."""

SHOWN: Final = frozenset(rules()) - SECRET_KEYS
"""The keys whose values may be shown. An unknown key may be a misspelt password."""


def secret_of(text: str, reference: str) -> Secret:
    """Return the secret that a text holds or refers to: `reference` is `_env`, `_file` or empty."""
    return Secret(REFERENCES[reference](text)) if reference else Secret(text)


def is_shown(name: str) -> bool:
    """Return whether the value of this `kafka.*` option may be shown."""
    return _key(name.lower().removeprefix(PREFIX)) in SHOWN


@attrs.frozen
class KafkaKeys(Mapping[str, str]):
    """The keys without `kafka.`, in lower case with dots, as they were given. Pickles as texts."""

    texts: Mapping[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> KafkaKeys:
        """Return the `kafka.*` keys of all options."""
        return cls(
            {
                name.lower()[len(PREFIX) :]: text if is_shown(name) else HiddenText(text)
                for name, text in options.items()
                if name.lower().startswith(PREFIX)
            }
        )

    def __getitem__(self, name: str) -> str:
        return self.texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def fingerprint(self) -> str:
        """Return a digest that is equal for equal keys and values, and reveals neither."""
        canonical = "\0".join(f"{name}\0{text}" for name, text in sorted(self.texts.items()))
        return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()

    def secrets(self) -> tuple[str, ...]:
        """Return the keys that hold a secret as text."""
        return tuple(name for name in self.texts if _key(name) in SECRET_KEYS)

    def problems(self) -> list[str]:
        """Return every problem as one sentence, without resolving a reference or opening a file."""
        found = [
            f"{PREFIX}{name} cannot be set: {hint}"
            for name, hint in DECIDED_BY_SOURCE.items()
            if name in self.texts
        ]
        settings: dict[str, Any] = {"bootstrap_servers": "localhost:9092"}
        for name, text in self.texts.items():
            key, reference = _split(name)
            if name in DECIDED_BY_SOURCE:
                continue
            if reference and not text.strip():
                found.append(f"{PREFIX}{name} must name {_what(reference)}")
            if key in settings and key != "bootstrap_servers":
                found.append(f"{PREFIX}{name} repeats another option; keep one of them")
            settings[key] = self._stand_in(key) if reference else _value(key, text, reference)
        try:
            _load(settings, "check")
        except ConfigError as exc:
            found += [f"{PREFIX}{problem}" for problem in exc.problems]
        return found

    def config(self, client_id: str) -> Config:
        """Return the client's configuration in the process that connects.

        Raises ConfigError for a reference that leads nowhere, or to what cannot be used. It names the process, since
        driver and workers have environments and files of their own.
        """
        settings = {_split(name)[0]: _value(*_named(name, text)) for name, text in self.texts.items()}
        try:
            return _load(settings, self.texts.get("group.id", client_id))
        except ConfigError as exc:
            if not (references := [name for name in self.texts if _split(name)[1]]):
                raise
            problems = [_as_option(problem, references) for problem in exc.problems]
            raise config_error(
                f"The configuration in process {os.getpid()} on {platform.node()} has", problems, RETRY
            ) from exc

    def _stand_in(self, key: str) -> Secret:
        """Return a placeholder for a secret that only the worker resolves."""
        if key != "sasl_jaas_config":
            return Secret("by-reference")
        mechanism = self.texts.get("sasl.mechanism", "").strip().upper()
        if mechanism == "OAUTHBEARER" and "sasl.oauthbearer.token.endpoint.url" in self.texts:
            return Secret(OF_AN_ENDPOINT)
        return Secret(STAND_INS.get(mechanism, f'{SCRAM_MODULE} required username="u" password="p";'))


def _load(settings: Mapping[str, Any], client_id: str) -> Config:
    """Load Kafka's keys over our defaults: large fetches, receive buffers of the system's size, no new topics."""
    ours: dict[str, Any] = {
        "client_id": client_id,
        "max_partition_fetch_bytes": FETCH_BYTES,
        "receive_buffer_bytes": -1,
        "allow_auto_create_topics": False,
    }
    return load({}, config={**ours, **settings})


def _key(name: str) -> str:
    key = name.strip().replace(".", "_")
    return SPELLINGS.get(key, key)


def _split(name: str) -> tuple[str, str]:
    """Return the client's key, and the kind of reference that the option is, empty if it is the value."""
    key = _key(name)
    for ending in REFERENCES:
        if key.endswith(ending) and key.removesuffix(ending) in SECRET_KEYS:
            return key.removesuffix(ending), ending
    return key, ""


def _named(name: str, text: str) -> tuple[str, str, str]:
    key, reference = _split(name)
    return key, text, reference


def _value(key: str, text: str, reference: str) -> str | Secret:
    return secret_of(text, reference) if key in SECRET_KEYS else text


def _as_option(problem: str, references: Iterable[str]) -> str:
    """Return a problem under the name of the option that was given: kafka.sasl.password.env for sasl_password."""
    for name in references:
        written = f"{_split(name)[0]} (config) "
        if problem.startswith(written):
            return f"{PREFIX}{name} {problem.removeprefix(written)}"
    return problem


def _what(reference: str) -> str:
    return "an environment variable" if reference == "_env" else "a file"
