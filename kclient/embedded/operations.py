"""What a client may do, as the bits that answers carry on request: bit n is the operation with code n (KIP-430)."""

from __future__ import annotations

from typing import Final

from kclient.embedded.call import Call
from kclient.embedded.releases import Release

CODES: Final = {
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
}
OF_TOPIC: Final = (
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
)
OF_CLUSTER: Final = (
    *("CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"),
)
OF_GROUP: Final = ("READ", "DELETE", "DESCRIBE")
OF_GROUP_CONFIG: Final = ("DESCRIBE_CONFIGS", "ALTER_CONFIGS")
GROUP_CONFIGS_SINCE: Final = Release.parse("3.8")
NOT_ASKED: Final = -(2**31)
CLUSTER: Final = "Cluster:kafka-cluster"


def authorized_operations(call: Call, operations: tuple[str, ...], resource: str) -> int:
    """Which of these operations nothing denies on, say, "Topic:orders"."""
    return sum(1 << CODES[operation] for operation in operations if call.allowed(operation, resource))


def group_operations(call: Call, group_id: str) -> int:
    """The same for a group; newer releases have settings of groups."""
    newer = call.state.release >= GROUP_CONFIGS_SINCE
    operations = (*OF_GROUP, *OF_GROUP_CONFIG) if newer else OF_GROUP
    return authorized_operations(call, operations, f"Group:{group_id}")
