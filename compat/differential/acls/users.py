"""Users of brokers with an authorizer and without logins: who they are shows in where they come from.

All are User:ANONYMOUS. This machine's loopback network has many addresses, and ACLs name hosts, so each user
has an address and rights of its own. ADMIN, at the address where brokers talk to each other too, may do
everything; until its ACLs are there, allow.everyone.if.no.acl.found lets it create them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from compat.harness import wire
from compat.harness.connection import Connection, ConnectionClosed
from compat.harness.side import CLOSED, Side
from compat.harness.waiting import eventually

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}
OPEN_UNTIL_THERE_ARE_ACLS = {"allow.everyone.if.no.acl.found": "true"}

ANONYMOUS = "User:ANONYMOUS"
ANY, LITERAL, PREFIXED = 1, 3, 4
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, TOKEN, USER = range(2, 8)
TYPES = (TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, TOKEN, USER)
ALL = 2
(READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE) = range(3, 9)
(CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE) = range(9, 13)
OPERATIONS = {
    "read": READ,
    "write": WRITE,
    "create": CREATE,
    "delete": DELETE,
    "alter": ALTER,
    "describe": DESCRIBE,
    "cluster-action": CLUSTER_ACTION,
    "describe-configs": DESCRIBE_CONFIGS,
    "alter-configs": ALTER_CONFIGS,
    "idempotent-write": IDEMPOTENT_WRITE,
}
DENY, ALLOW = 2, 3
CLUSTER_NAME = "kafka-cluster"


def acl(
    type_: int,
    name: str,
    operation: int,
    host: str = "*",
    *,
    principal: str = ANONYMOUS,
    pattern: int = LITERAL,
    permission: int = ALLOW,
) -> dict[str, Any]:
    return {
        "ResourceType": type_,
        "ResourceName": name,
        "ResourcePatternType": pattern,
        "Principal": principal,
        "Host": host,
        "Operation": operation,
        "PermissionType": permission,
    }


def everywhere(operation: int, host: str) -> list[dict[str, Any]]:
    """One operation, on every resource of every type."""
    return [acl(type_, CLUSTER_NAME if type_ == CLUSTER else "*", operation, host) for type_ in TYPES]


@dataclass(frozen=True, slots=True)
class User:
    name: str
    host: str


ADMIN = User("admin", "127.0.0.1")
NOBODY = User("nobody", "127.0.0.2")
SOME = User("some", "127.0.0.3")
SINGLE = {name: User(name, f"127.0.1.{operation}") for name, operation in OPERATIONS.items()}
"""Each may do one thing, everywhere."""
CLUSTER_ONLY = {
    f"cluster-{name}": User(f"cluster-{name}", f"127.0.2.{operation}")
    for name, operation in OPERATIONS.items()
}
"""Each may do one thing, to the cluster alone."""
ONE_TYPE = {
    name: User(name, f"127.0.3.{type_}")
    for name, type_ in {"topics": TOPIC, "groups": GROUP, "transactions": TRANSACTIONAL_ID}.items()
}
"""Each may do everything, to resources of one type."""


class Door:
    """A broker as users see it."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.topic_ids: dict[str, bytes] = {}
        self._connections: dict[str, Connection] = {}

    def ask(self, user: User, api_name: str, version: int, values: dict[str, Any]) -> Any:
        """The answer with comparable values; CLOSED when the broker hung up instead."""
        try:
            return self.side.comparable(self.raw(user, api_name, version, values))
        except ConnectionClosed:
            self._connections.pop(user.host).close()
            return CLOSED

    def raw(self, user: User, api_name: str, version: int, values: dict[str, Any]) -> dict[str, Any]:
        known = wire.supported(wire.apis()[api_name].request, version, values)
        return self.connection(user).ask(api_name, version, known)

    def connection(self, user: User) -> Connection:
        if user.host not in self._connections:
            self._connections[user.host] = Connection(
                self.side.server.bootstrap, timeout=20, source_host=user.host
            )
        return self._connections[user.host]

    def create_acls(self, acls: Iterable[dict[str, Any]]) -> None:
        answer = self.raw(ADMIN, "CreateAcls", 3, {"Creations": list(acls)})
        assert not any(each["ErrorCode"] for each in answer["Results"]), answer

    def let_in(self, *more: dict[str, Any]) -> None:
        """The ACLs of all users, and these; from now on nobody may do what no ACL allows."""
        acls = [*everywhere(ALL, ADMIN.host), *more]
        for name, operation in OPERATIONS.items():
            acls += everywhere(operation, SINGLE[name].host)
            acls.append(acl(CLUSTER, CLUSTER_NAME, operation, CLUSTER_ONLY[f"cluster-{name}"].host))
        for user, type_ in zip(ONE_TYPE.values(), (TOPIC, GROUP, TRANSACTIONAL_ID), strict=True):
            acls.append(acl(type_, "*", ALL, user.host))
        self.create_acls(acls)
        probe = {"ResourceTypeFilter": ANY, "PatternTypeFilter": ANY, "Operation": ANY, "PermissionType": ANY}
        nothing = {"ResourceNameFilter": None, "PrincipalFilter": None, "HostFilter": None}

        def known_acls() -> int:
            answer = self.raw(ADMIN, "DescribeAcls", 3, {**probe, **nothing})
            return sum(len(resource["Acls"]) for resource in answer["Resources"])

        eventually(known_acls, lambda found: found == len(acls))

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
