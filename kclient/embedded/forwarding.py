"""Which broker changes topics: the controller alone where ZooKeeper chose it, any of them since they forward."""

from __future__ import annotations

from typing import Final

from kclient.embedded.call import Call
from kclient.embedded.refusal import Refused
from kclient.embedded.releases import Release
from kclient.protocol.errors import NOT_CONTROLLER

FORWARDED_SINCE: Final = Release.parse("3.0")


def check_controller(call: Call) -> None:
    """Raise Refused where this broker cannot change topics."""
    if call.state.release < FORWARDED_SINCE and call.broker.node_id != call.state.controller_id:
        raise Refused(NOT_CONTROLLER)
