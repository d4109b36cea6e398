"""Every way to name a file, called with one that has no end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

from kclient.config import load
from kclient.errors import ConfigError
from kclient.network.tls import tls_of
from kclient.security.secret import file
from kclient.spark.decoding.avro_schema import reader_schema

TLS = {"bootstrap_servers": "localhost:1", "security_protocol": "SSL"}
SASL = {"bootstrap_servers": "localhost:1", "security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}

WAYS: dict[str, Callable[[str], Any]] = {
    "properties": lambda path: load({}, properties=path),
    "secret": lambda path: load({**SASL, "sasl_username": "u", "sasl_password": file(path)}),
    "setting": lambda path: load({**TLS, "client_id": file(path)}),
    "trust store": lambda path: tls_of(load({**TLS, "ssl_truststore_location": path})),
    "key store": lambda path: tls_of(load({**TLS, "ssl_keystore_location": path})),
    "schema": lambda path: reader_schema("valueSchema", path),
}


def problem_with(way: str, path: str) -> str:
    """The error that the user gets."""
    try:
        WAYS[way](path)
    except ConfigError as exc:
        return str(exc)
    return "nothing"


def content_of_pipe(text: str, folder: str) -> str:
    """What comes through a pipe that has a writer."""
    path = Path(folder) / "pipe"
    os.mkfifo(path)
    keep = os.open(path, os.O_RDWR)  # a writer opens before and closes after, as in a shell's <(…)
    writer = Timer(0.3, lambda: (os.write(keep, text.encode()), os.close(keep)))
    writer.start()
    found = file(path)()
    writer.join()
    return found
