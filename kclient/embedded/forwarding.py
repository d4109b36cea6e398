"""Which broker changes topics: the controller alone where ZooKeeper chose it, any of them since they forward."""

from __future__ import annotations

from typing import Final

from kclient.embedded.call import Call
from kclient.embedded.refusal import Refused
from kclient.embedded.releases import Release
from kclient.protocol.errors import NOT_CONTROLLER

FORWARDED_SINCE: Final = Release.parse("3.0")


def forwards(call: Call) -> bool:
    """Whether this release asks a controller of its own kind (KRaft)."""
    return call.state.release >= FORWARDED_SINCE


def check_controller(call: Call) -> None:
    """Raise Refused where this broker cannot change topics."""
    if not forwards(call) and call.broker.node_id != call.state.controller_id:
        raise Refused(NOT_CONTROLLER)
