"""The Kafka protocol: messages by name and version, as objects, as bytes and as JSON.

from kclient import protocol
request = protocol.from_json("MetadataRequest", 12, {"topics": None})
data = protocol.encode(request, 12)
assert protocol.decode("MetadataRequest", 12, data) == request
"""

from __future__ import annotations

from kclient.errors import ProtocolDecodeError
from kclient.protocol.json import from_json, records_of, to_json, unknown_tags_of
from kclient.protocol.message import Message
from kclient.protocol.primitives import Buffer
from kclient.protocol.registry import message_names, read_message, write_message

__all__ = [
    "Message",
    "decode",
    "encode",
    "from_json",
    "message_names",
    "records_of",
    "to_json",
    "unknown_tags_of",
]


def decode(name: str, version: int, data: Buffer) -> Message:
    """Decode a message without size and header, which must take all bytes of `data`.

    Raise ProtocolDecodeError, also for bytes after the message.
    """
    message, end = read_message(name, version, data)
    if end != len(data):
        text = f"{name} version {version} cannot be read: {len(data) - end} bytes after it"
        raise ProtocolDecodeError(text, message=name, version=version, field="", offset=end)
    return message


def encode(message: Message, version: int) -> bytes:
    """Encode a message, without size and header. Raise ProtocolEncodeError."""
    return b"".join(write_message(message, version))
