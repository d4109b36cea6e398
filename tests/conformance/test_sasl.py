"""SASL at a listener without authentication: it refuses both requests and goes on."""

from __future__ import annotations

import pytest

from kclient.generated.sasl_authenticate_request import SaslAuthenticateRequest
from kclient.generated.sasl_handshake_request import SaslHandshakeRequest
from kclient.generated.sasl_handshake_response import SaslHandshakeResponse
from kclient.protocol import errors
from tests.conformance.target import Target


@pytest.mark.api("SaslHandshake")
def test_a_handshake_on_a_plain_listener(target: Target, version: int) -> None:
    response = target.ask(SaslHandshakeRequest(mechanism="PLAIN"), version)
    assert response == SaslHandshakeResponse(error_code=errors.ILLEGAL_SASL_STATE, mechanisms=[])


@pytest.mark.api("SaslAuthenticate")
def test_a_token_on_a_plain_listener(target: Target, version: int) -> None:
    response = target.ask(SaslAuthenticateRequest(auth_bytes=b"\0user\0secret"), version)
    assert (response.error_code, bytes(response.auth_bytes)) == (errors.ILLEGAL_SASL_STATE, b"")
    assert response.error_message
