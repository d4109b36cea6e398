"""ApiVersionsResponse, versions 0–5: its classes, and one read and write pair per layout.

Generated from schemas/ApiVersionsResponse.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message, Struct
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    compact_length,
    compact_string_length,
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    read_whole,
    write_tags,
    written,
)

pack_bool: Final = struct.Struct(">?").pack
pack_i2: Final = struct.Struct(">h").pack
pack_i2_i4: Final = struct.Struct(">hi").pack
pack_i2x2: Final = struct.Struct(">hh").pack
pack_i2x3: Final = struct.Struct(">hhh").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i8: Final = struct.Struct(">q").pack
unpack_bool: Final = struct.Struct(">?").unpack_from
unpack_i2_i4: Final = struct.Struct(">hi").unpack_from
unpack_i2_u1: Final = struct.Struct(">hB").unpack_from
unpack_i2x2_u1: Final = struct.Struct(">hhB").unpack_from
unpack_i2x3: Final = struct.Struct(">hhh").unpack_from
unpack_i2x3_u1: Final = struct.Struct(">hhhB").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i8: Final = struct.Struct(">q").unpack_from


@define(weakref_slot=False)
class ApiVersion(Struct):
    """The APIs this listener answers; after UNSUPPORTED_VERSION perhaps ApiVersions alone, or nothing from
    very old brokers.

    Attributes:
        api_key: The API's number, as it goes into the request header.
        min_version: Oldest version of the API that the broker still answers.
        max_version: Newest version of the API that the broker answers; a client uses the smaller of this and
            its own.
    """

    api_key: int = 0
    min_version: int = 0
    max_version: int = 0


@define(weakref_slot=False)
class SupportedFeatureKey(Struct):
    """Cluster features this broker's software could take part in, such as metadata.version; clients need them
    only as information.

    Attributes:
        name: Name of the feature that the software knows.
        min_version: Lowest level of the feature this broker can run at.
        max_version: Highest level of the feature this broker can run at.
    """

    name: str = ""
    min_version: int = 0
    max_version: int = 0


@define(weakref_slot=False)
class FinalizedFeatureKey(Struct):
    """Feature levels in force in the whole cluster; to be used only if FinalizedFeaturesEpoch is not -1.

    Attributes:
        name: Name of the feature that is in force.
        max_version_level: Highest level in force cluster-wide, which is the level in use.
        min_version_level: Lowest level in force cluster-wide.
    """

    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0


@define(weakref_slot=False)
class ApiVersionsResponse(Message):
    """What the broker speaks. Always behind response header 0, so that a client can read it before it knows
    anything.

    Attributes:
        error_code: 0; UNSUPPORTED_VERSION (35) in a version 0 body says to ask again with a version that
            ApiKeys allows; REBOOTSTRAP_REQUIRED (129) that this is another node or cluster than the request
            named.
        api_keys: The APIs this listener answers; after UNSUPPORTED_VERSION perhaps ApiVersions alone, or
            nothing from very old brokers.
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 2 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        supported_features: Cluster features this broker's software could take part in, such as
            metadata.version; clients need them only as information.
        finalized_features_epoch: Grows with every change of the finalized features, so that the newest of
            several answers can be told; -1 when unknown.
        finalized_features: Feature levels in force in the whole cluster; to be used only if
            FinalizedFeaturesEpoch is not -1.
        zk_migration_ready: True from a controller prepared to take over from ZooKeeper; only releases before
            4.0 ever set it.
    """

    NAME: ClassVar[str] = "ApiVersionsResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 18
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_SINCE: ClassVar[int | None] = 3

    error_code: int = 0
    api_keys: list[ApiVersion] = Factory(list)
    throttle_time_ms: int = 0
    supported_features: list[SupportedFeatureKey] = Factory(list)
    finalized_features_epoch: int = -1
    finalized_features: list[FinalizedFeatureKey] = Factory(list)
    zk_migration_ready: bool = False


# ApiVersion in versions 0–2
def read_api_version_v0(data: Buffer, at: int, size: int) -> tuple[ApiVersion, int]:
    message = new(ApiVersion)
    message.unknown_tags = ()
    message.api_key, message.min_version, message.max_version = unpack_i2x3(data, at)
    at += 6
    return message, at


def write_api_version_v0(message: ApiVersion, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i2x3(message.api_key, message.min_version, message.max_version))


# ApiVersionsResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ApiVersionsResponse, int]:
    message = new(ApiVersionsResponse)
    message.throttle_time_ms = 0
    message.supported_features = []
    message.finalized_features_epoch = -1
    message.finalized_features = []
    message.zk_migration_ready = False
    message.unknown_tags = ()
    message.error_code, count = unpack_i2_i4(data, at)
    at += 6
    if not 0 <= count * 6 <= size - at:
        raise Malformed("api_keys")
    api_keys: list[ApiVersion] = []
    for _ in range(count):
        api_key, at = read_api_version_v0(data, at, size)
        api_keys.append(api_key)
    message.api_keys = api_keys
    return message, at


def write_v0(message: ApiVersionsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    api_keys = message.api_keys
    add(pack_i2_i4(message.error_code, len(api_keys)))
    for api_key in api_keys:
        write_api_version_v0(api_key, add)


# ApiVersionsResponse in versions 1–2
def read_v1(data: Buffer, at: int, size: int) -> tuple[ApiVersionsResponse, int]:
    message = new(ApiVersionsResponse)
    message.supported_features = []
    message.finalized_features_epoch = -1
    message.finalized_features = []
    message.zk_migration_ready = False
    message.unknown_tags = ()
    message.error_code, count = unpack_i2_i4(data, at)
    at += 6
    if not 0 <= count * 6 <= size - at:
        raise Malformed("api_keys")
    api_keys: list[ApiVersion] = []
    for _ in range(count):
        api_key, at = read_api_version_v0(data, at, size)
        api_keys.append(api_key)
    message.api_keys = api_keys
    (message.throttle_time_ms,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_v1(message: ApiVersionsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    api_keys = message.api_keys
    add(pack_i2_i4(message.error_code, len(api_keys)))
    for api_key in api_keys:
        write_api_version_v0(api_key, add)
    add(pack_i4(message.throttle_time_ms))


# ApiVersion in versions 3–5
def read_api_version_v3(data: Buffer, at: int, size: int) -> tuple[ApiVersion, int]:
    message = new(ApiVersion)
    message.unknown_tags = ()
    message.api_key, message.min_version, message.max_version, tags = unpack_i2x3_u1(data, at)
    at += 7
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_api_version_v3(message: ApiVersion, add: Add) -> None:
    add(pack_i2x3(message.api_key, message.min_version, message.max_version))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# SupportedFeatureKey in versions 3–5
def read_supported_feature_key_v3(data: Buffer, at: int, size: int) -> tuple[SupportedFeatureKey, int]:
    message = new(SupportedFeatureKey)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    message.min_version, message.max_version, tags = unpack_i2x2_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_supported_feature_key_v3(message: SupportedFeatureKey, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    add(pack_i2x2(message.min_version, message.max_version))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# FinalizedFeatureKey in versions 3–5
def read_finalized_feature_key_v3(data: Buffer, at: int, size: int) -> tuple[FinalizedFeatureKey, int]:
    message = new(FinalizedFeatureKey)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    message.max_version_level, message.min_version_level, tags = unpack_i2x2_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_finalized_feature_key_v3(message: FinalizedFeatureKey, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    add(pack_i2x2(message.max_version_level, message.min_version_level))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_supported_features_tag_v3(data: Buffer, at: int, size: int) -> tuple[list[SupportedFeatureKey], int]:
    value: list[SupportedFeatureKey]
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 6 <= size - at:
        raise Malformed("supported_features")
    supported_features: list[SupportedFeatureKey] = []
    for _ in range(count):
        supported_feature, at = read_supported_feature_key_v3(data, at, size)
        supported_features.append(supported_feature)
    value = supported_features
    return value, at


def write_supported_features_tag_v3(value: list[SupportedFeatureKey], add: Add) -> None:
    supported_features = value
    add(compact_length[len(supported_features)])
    for supported_feature in supported_features:
        write_supported_feature_key_v3(supported_feature, add)


def read_finalized_features_epoch_tag_v3(data: Buffer, at: int, size: int) -> tuple[int, int]:
    value: int
    (value,) = unpack_i8(data, at)
    at += 8
    return value, at


def write_finalized_features_epoch_tag_v3(value: int, add: Add) -> None:
    add(pack_i8(value))


def read_finalized_features_tag_v3(data: Buffer, at: int, size: int) -> tuple[list[FinalizedFeatureKey], int]:
    value: list[FinalizedFeatureKey]
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 6 <= size - at:
        raise Malformed("finalized_features")
    finalized_features: list[FinalizedFeatureKey] = []
    for _ in range(count):
        finalized_feature, at = read_finalized_feature_key_v3(data, at, size)
        finalized_features.append(finalized_feature)
    value = finalized_features
    return value, at


def write_finalized_features_tag_v3(value: list[FinalizedFeatureKey], add: Add) -> None:
    finalized_features = value
    add(compact_length[len(finalized_features)])
    for finalized_feature in finalized_features:
        write_finalized_feature_key_v3(finalized_feature, add)


def read_zk_migration_ready_tag_v3(data: Buffer, at: int, size: int) -> tuple[bool, int]:
    value: bool
    (value,) = unpack_bool(data, at)
    at += 1
    return value, at


def write_zk_migration_ready_tag_v3(value: bool, add: Add) -> None:
    add(pack_bool(value))


# ApiVersionsResponse in versions 3–5
def read_v3(data: Buffer, at: int, size: int) -> tuple[ApiVersionsResponse, int]:
    message = new(ApiVersionsResponse)
    message.supported_features = []
    message.finalized_features_epoch = -1
    message.finalized_features = []
    message.zk_migration_ready = False
    message.unknown_tags = ()
    message.error_code, count = unpack_i2_u1(data, at)
    at += 3
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 7 <= size - at:
        raise Malformed("api_keys")
    api_keys: list[ApiVersion] = []
    for _ in range(count):
        api_key, at = read_api_version_v3(data, at, size)
        api_keys.append(api_key)
    message.api_keys = api_keys
    message.throttle_time_ms, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.supported_features = read_whole(read_supported_features_tag_v3, found.pop(0))
        if 1 in found:
            message.finalized_features_epoch = read_whole(read_finalized_features_epoch_tag_v3, found.pop(1))
        if 2 in found:
            message.finalized_features = read_whole(read_finalized_features_tag_v3, found.pop(2))
        if 3 in found:
            message.zk_migration_ready = read_whole(read_zk_migration_ready_tag_v3, found.pop(3))
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: ApiVersionsResponse, add: Add) -> None:
    add(pack_i2(message.error_code))
    api_keys = message.api_keys
    add(compact_length[len(api_keys)])
    for api_key in api_keys:
        write_api_version_v3(api_key, add)
    add(pack_i4(message.throttle_time_ms))
    tags: dict[int, bytes] = {}
    if message.supported_features != []:
        tags[0] = written(write_supported_features_tag_v3, message.supported_features)
    if message.finalized_features_epoch != -1:
        tags[1] = written(write_finalized_features_epoch_tag_v3, message.finalized_features_epoch)
    if message.finalized_features != []:
        tags[2] = written(write_finalized_features_tag_v3, message.finalized_features)
    if message.zk_migration_ready:
        tags[3] = written(write_zk_migration_ready_tag_v3, message.zk_migration_ready)
    if tags or message.unknown_tags:
        write_tags((0, 1, 2, 3), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ApiVersionsResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v1, write_v1),
    3: (read_v3, write_v3),
    4: (read_v3, write_v3),
    5: (read_v3, write_v3),
}

# what JSON and error messages know of the fields
ApiVersion.FIELDS = (
    Field("api_key", "apiKey", "int16", (0, 5)),
    Field("min_version", "minVersion", "int16", (0, 5)),
    Field("max_version", "maxVersion", "int16", (0, 5)),
)
SupportedFeatureKey.FIELDS = (
    Field("name", "name", "string", (3, 5)),
    Field("min_version", "minVersion", "int16", (3, 5)),
    Field("max_version", "maxVersion", "int16", (3, 5)),
)
FinalizedFeatureKey.FIELDS = (
    Field("name", "name", "string", (3, 5)),
    Field("max_version_level", "maxVersionLevel", "int16", (3, 5)),
    Field("min_version_level", "minVersionLevel", "int16", (3, 5)),
)
ApiVersionsResponse.FIELDS = (
    Field("error_code", "errorCode", "int16", (0, 5)),
    Field("api_keys", "apiKeys", "[]ApiVersion", (0, 5), struct=ApiVersion),
    Field("throttle_time_ms", "throttleTimeMs", "int32", (1, 5), ignorable=True),
    Field(
        "supported_features",
        "supportedFeatures",
        "[]SupportedFeatureKey",
        (3, 5),
        tagged=(3, 5),
        tag=0,
        struct=SupportedFeatureKey,
        ignorable=True,
    ),
    Field(
        "finalized_features_epoch",
        "finalizedFeaturesEpoch",
        "int64",
        (3, 5),
        tagged=(3, 5),
        tag=1,
        ignorable=True,
    ),
    Field(
        "finalized_features",
        "finalizedFeatures",
        "[]FinalizedFeatureKey",
        (3, 5),
        tagged=(3, 5),
        tag=2,
        struct=FinalizedFeatureKey,
        ignorable=True,
    ),
    Field("zk_migration_ready", "zkMigrationReady", "bool", (3, 5), tagged=(3, 5), tag=3, ignorable=True),
)
