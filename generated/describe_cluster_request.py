"""DescribeClusterRequest, versions 0–2: its classes, and one read and write pair per layout.

Generated from schemas/DescribeClusterRequest.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import define

from kclient.protocol.message import Field, Message
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    Unwritable,
    left_over,
    new,
    read_tags,
    write_tags,
)

pack_bool: Final = struct.Struct(">?").pack
pack_bool_i1: Final = struct.Struct(">?b").pack
pack_bool_i1_bool: Final = struct.Struct(">?b?").pack
unpack_bool_i1_bool_u1: Final = struct.Struct(">?b?B").unpack_from
unpack_bool_i1_u1: Final = struct.Struct(">?bB").unpack_from
unpack_bool_u1: Final = struct.Struct(">?B").unpack_from


@define(weakref_slot=False)
class DescribeClusterRequest(Message):
    """Asks for the cluster's id, controller and nodes.

    Attributes:
        include_cluster_authorized_operations: True to be told what the caller may do with the cluster.
        endpoint_type: Whose addresses are wanted: 1 brokers, 2 controllers.
        include_fenced_brokers: True to be told also of brokers that are registered but not in service.
    """

    NAME: ClassVar[str] = "DescribeClusterRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 60
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False


# DescribeClusterRequest in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[DescribeClusterRequest, int]:
    message = new(DescribeClusterRequest)
    message.endpoint_type = 1
    message.include_fenced_brokers = False
    message.unknown_tags = ()
    message.include_cluster_authorized_operations, tags = unpack_bool_u1(data, at)
    at += 2
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: DescribeClusterRequest, add: Add) -> None:
    if message.endpoint_type != 1:
        raise Unwritable("endpoint_type")
    if message.include_fenced_brokers:
        raise Unwritable("include_fenced_brokers")
    add(pack_bool(message.include_cluster_authorized_operations))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeClusterRequest in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[DescribeClusterRequest, int]:
    message = new(DescribeClusterRequest)
    message.include_fenced_brokers = False
    message.unknown_tags = ()
    message.include_cluster_authorized_operations, message.endpoint_type, tags = unpack_bool_i1_u1(data, at)
    at += 3
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v1(message: DescribeClusterRequest, add: Add) -> None:
    if message.include_fenced_brokers:
        raise Unwritable("include_fenced_brokers")
    add(pack_bool_i1(message.include_cluster_authorized_operations, message.endpoint_type))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeClusterRequest in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[DescribeClusterRequest, int]:
    message = new(DescribeClusterRequest)
    message.unknown_tags = ()
    (
        message.include_cluster_authorized_operations,
        message.endpoint_type,
        message.include_fenced_brokers,
        tags,
    ) = unpack_bool_i1_bool_u1(data, at)
    at += 4
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v2(message: DescribeClusterRequest, add: Add) -> None:
    add(
        pack_bool_i1_bool(
            message.include_cluster_authorized_operations,
            message.endpoint_type,
            message.include_fenced_brokers,
        )
    )
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DescribeClusterRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v2, write_v2),
}

# what JSON and error messages know of the fields
DescribeClusterRequest.FIELDS = (
    Field("include_cluster_authorized_operations", "includeClusterAuthorizedOperations", "bool", (0, 2)),
    Field("endpoint_type", "endpointType", "int8", (1, 2)),
    Field("include_fenced_brokers", "includeFencedBrokers", "bool", (2, 2)),
)
