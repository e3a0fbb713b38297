"""ACLs given to a user, in few words."""

from __future__ import annotations

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from compat.harness.sasl import ADMIN, SaslServer


def allow(server: SaslServer, user: str, rights: dict[str, str]) -> None:
    """``rights``: "topic orders", or "topic orders*" for a prefix, to "read write"."""
    bindings = []
    for resource, operations in rights.items():
        kind, _, name = resource.partition(" ")
        prefixed = name.endswith("*")
        bindings += [
            AclBinding(
                ResourceType[kind.upper()],
                name.removesuffix("*"),
                ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                AclOperation[operation.upper()],
                AclPermissionType.ALLOW,
            )
            for operation in operations.split()
        ]
    admin = admin_of(server)  # its futures end with it
    for created in admin.create_acls(bindings).values():
        created.result(30)


def admin_of(server: SaslServer) -> AdminClient:
    return AdminClient(server.librdkafka_configs(*ADMIN))
