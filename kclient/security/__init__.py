"""Security without a socket: secrets, certificates, and both sides of PLAIN and SCRAM.

Nothing here reads a clock or the network; `network/sasl.py` holds the conversation with a broker, and the embedded
cluster plays the broker's part with `plain_user` and `ScramServer`. Imports nothing of ours but errors.
"""

from __future__ import annotations

from kclient.security.plain import PlainUser, plain_token, plain_user
from kclient.security.providers import env, file
from kclient.security.scram import SCRAM_DIGESTS, ScramClient, ScramError
from kclient.security.scram_server import ScramCredential, ScramServer, scram_credential
from kclient.security.secret import Secret

__all__ = [
    "SCRAM_DIGESTS",
    "PlainUser",
    "ScramClient",
    "ScramCredential",
    "ScramError",
    "ScramServer",
    "Secret",
    "env",
    "file",
    "plain_token",
    "plain_user",
    "scram_credential",
]
