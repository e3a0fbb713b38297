"""ACLs of tests: short to write, and created as clients do."""

from __future__ import annotations

from typing import Any

from kbroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from kbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kbroker.security.acls import AclOperation, AclResourceType, PatternType, Permission
from kbroker.security.principal import Principal

from .conftest import Cluster

TOPIC, GROUP, CLUSTER = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER
TRANSACTIONAL_ID = AclResourceType.TRANSACTIONAL_ID
ADMIN = Principal("User", "admin")
ALICE = Principal("User", "alice")
AUTHORIZED = {
    "node.id": "1",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:other",
}
"""The settings of a broker with an authorizer."""


def creation(
    operation: AclOperation,
    type_: AclResourceType,
    name: str,
    *,
    who: str = "User:alice",
    host: str = "*",
    pattern: PatternType = PatternType.LITERAL,
    permission: Permission = Permission.ALLOW,
) -> AclCreation:
    return AclCreation(type_, name, pattern, who, host, operation, permission)


def as_admin(cluster: Cluster, request: Any, version: int = 3) -> Any:
    session = cluster.session()
    principal, session.principal = session.principal, ADMIN
    try:
        return cluster.send(request, version)
    finally:
        session.principal = principal


def allow(
    cluster: Cluster, operation: AclOperation, type_: AclResourceType, name: str, **more: Any
) -> AclCreation:
    acl = creation(operation, type_, name, **more)
    (result,) = as_admin(cluster, CreateAclsRequest([acl])).results
    assert result.error_code == 0, result
    return acl


def take_back(cluster: Cluster, acl: AclCreation) -> None:
    found = DeleteAclsFilter(
        acl.resource_type,
        acl.resource_name,
        acl.resource_pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )
    (result,) = as_admin(cluster, DeleteAclsRequest([found])).filter_results
    assert len(result.matching_acls) == 1, result
