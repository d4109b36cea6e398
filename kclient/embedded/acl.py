"""Who may do what: everybody everything, except what was denied."""

from __future__ import annotations

from fnmatch import fnmatchcase

from kclient.errors import ArgumentError

OPERATIONS = frozenset(
    {"READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"}
    | {"CLUSTER_ACTION", "IDEMPOTENT_WRITE", "ALL"}
)
RESOURCES = frozenset({"Topic", "Group", "TransactionalId", "Cluster"})


class Acl:
    """Denials in the order in which they were said. "*" stands for anything, also within a name."""

    def __init__(self) -> None:
        self._denied: list[tuple[str, str, str]] = []

    def deny(self, principal: str, operation: str, resource: str) -> None:
        """From now on refuse, say, ("User:alice", "READ", "Topic:orders"). Raises ArgumentError for an unknown kind."""
        kind = resource.partition(":")[0]
        if operation not in OPERATIONS or kind not in RESOURCES:
            raise ArgumentError(
                f"Cannot deny {operation} on {resource}: an operation is one of {', '.join(sorted(OPERATIONS))}, "
                f"a resource one of {', '.join(sorted(RESOURCES))} with a colon and a name behind it."
            )
        self._denied.append((principal, operation, resource))

    def allow(self, principal: str, operation: str, resource: str) -> None:
        """Take a denial back. Raises ArgumentError where there is none."""
        if (principal, operation, resource) not in self._denied:
            raise ArgumentError(f"{operation} on {resource} was not denied to {principal}.")
        self._denied.remove((principal, operation, resource))

    def clear(self) -> None:
        """Take every denial back."""
        self._denied.clear()

    def allows(self, principal: str, operation: str, resource: str) -> bool:
        """Whether no denial fits."""
        return not any(
            fnmatchcase(principal, who) and what in (operation, "ALL") and fnmatchcase(resource, which)
            for who, what, which in self._denied
        )
