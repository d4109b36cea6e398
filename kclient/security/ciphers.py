"""Which cipher suites may be used: the names of the standard, as Java has them, for OpenSSL, which has its own.

Python sets the suites of TLS 1.2 alone; those of TLS 1.3 are all on or, with the version, all off. So a list that
names none of TLS 1.3 ends at TLS 1.2, one that names no other begins with TLS 1.3, and one that names only some of
TLS 1.3 cannot be kept and is refused.
"""

from __future__ import annotations

import re
import ssl
from typing import Final

import attrs

from kclient.errors import ConfigError

TLS_1_3: Final = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")

_STANDARD = re.compile(r"TLS_(?:(?P<exchange>[A-Z0-9_]+)_)?WITH_(?P<cipher>[A-Z0-9_]+)")


@attrs.frozen
class Ciphers:
    """The chosen suites under their names in the configuration; none: whatever OpenSSL thinks right."""

    names: tuple[str, ...] = ()

    @property
    def newest(self) -> list[str]:
        return [name for name in self.names if name in TLS_1_3]

    @property
    def older(self) -> list[str]:
        return [name for name in self.names if name not in TLS_1_3]

    def versions(
        self, lowest: ssl.TLSVersion, highest: ssl.TLSVersion
    ) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
        """The protocol versions that the suites leave of these. Raises ConfigError where none is left."""
        if self.newest and set(self.newest) != set(TLS_1_3):
            raise _refused(f"Name all of {', '.join(TLS_1_3)} or none: Python cannot choose among them")
        if self.names and not self.newest:
            highest = min(highest, ssl.TLSVersion.TLSv1_2)
        if self.newest and not self.older:
            lowest = max(lowest, ssl.TLSVersion.TLSv1_3)
        if lowest > highest:
            raise _refused("ssl_enabled_protocols and ssl_protocol leave no version that has such suites")
        return lowest, highest

    def apply(self, context: ssl.SSLContext) -> None:
        """Set the suites of TLS 1.2. Raises ConfigError for a name that OpenSSL does not know."""
        if not self.older:
            return
        for name in self.older:
            try:
                context.set_ciphers(openssl_name(name))
            except ssl.SSLError:
                raise _refused(f"{name} is not a suite that this Python's OpenSSL has") from None
        context.set_ciphers(":".join(openssl_name(name) for name in self.older))


def openssl_name(name: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256 to OpenSSL; its own names stay."""
    match = _STANDARD.fullmatch(name)
    if match is None:
        return name
    cipher = re.sub(r"AES_(\d+)", r"AES\1", match["cipher"]).replace("_CBC", "")
    cipher = cipher.removesuffix("_SHA256") if "CHACHA20" in cipher else cipher
    exchange = match["exchange"] or "RSA"
    return cipher.replace("_", "-") if exchange == "RSA" else f"{exchange}_{cipher}".replace("_", "-")


def _refused(why: str) -> ConfigError:
    return ConfigError(
        f"ssl_cipher_suites cannot be kept. {why}. Leave the key out, or name other suites.",
        problems=(f"ssl_cipher_suites: {why}",),
    )
