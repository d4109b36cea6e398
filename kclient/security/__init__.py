"""Security without a socket: secrets, certificates, both sides of PLAIN, SCRAM and OAUTHBEARER, the client of GSSAPI.

Nothing here reads a clock or the network but `cloud_tokens.py`, which calls the libraries of AWS, Azure and Google, and
`kerberos.py`, whose library asks the KDC. `network/sasl.py` holds the conversation with a broker, and the embedded
cluster plays the broker's part with `plain_user` and `ScramServer`. Imports only kclient.errors, runtime and text of
kclient.
"""

from __future__ import annotations

from kclient.security.oauthbearer import OAuthToken
from kclient.security.plain import PlainUser, plain_token, plain_user
from kclient.security.scram import (
    SCRAM_DIGESTS,
    ScramClient,
    ScramCredential,
    ScramError,
    ScramServer,
    scram_credential,
)
from kclient.security.secret import Secret, env, file

__all__ = [
    "SCRAM_DIGESTS",
    "OAuthToken",
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
