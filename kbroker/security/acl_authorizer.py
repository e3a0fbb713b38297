"""The authorizer that decides by ACLs, as Kafka's StandardAuthorizer does.

- Super users may do everything.
- Of a resource speak the bindings with its name, those with the name ``*``, and those with a prefix of it.
- One that denies outweighs all that allow. What none allows is refused; where none speaks of the resource,
  whoever asks, allow.everyone.if.no.acl.found decides.
- Who is allowed to read, write, delete or alter may describe; who may alter configs may describe them. What
  is denied implies nothing.

Decisions are remembered until a binding changes: to ask for one again is to look into a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kbroker.security.acl_bindings import ANYBODY, WILDCARD, AclBinding
from kbroker.security.acls import AclOperation, AclResourceType, PatternType, Permission

if TYPE_CHECKING:
    from kbroker.security.acl_store import AclStore, OfPrincipals
    from kbroker.security.authorizer import Caller
    from kbroker.security.principal import Principal

_MOST_DECISIONS = 20_000
_LONGEST_NAME = (
    256  # of a resource about which a decision is remembered: a topic's has at most 249 characters
)

_IMPLIED_BY = {operation: {AclOperation.ALL, operation} for operation in AclOperation} | {
    AclOperation.DESCRIBE: {
        AclOperation.ALL,
        AclOperation.DESCRIBE,
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    },
    AclOperation.DESCRIBE_CONFIGS: {
        AclOperation.ALL,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    },
}
"""What, where it is allowed, allows an operation."""

_Question = tuple["Principal", str, int, int, str | None]
"""Who, from where, does what to which; None: to any at all."""


class AclAuthorizer:
    def __init__(self, acls: AclStore, super_users: Iterable[str], *, allow_without_acls: bool) -> None:
        self.acls = acls
        self._super_users = frozenset(super_users)
        self._allow_without_acls = allow_without_acls
        self._decisions: dict[_Question, bool] = {}
        acls.on_change(self._decisions.clear)

    def authorize(
        self, caller: Caller, operation: AclOperation, resource_type: AclResourceType, name: str
    ) -> bool:
        # Plain numbers: the hash of an enum's member is a call.
        question = (caller.principal, caller.peer_host, operation._value_, resource_type._value_, name)
        decision = self._decisions.get(question)
        if decision is None:
            decision = self._decide(caller.principal, caller.peer_host, operation, resource_type, name)
            if len(name) <= _LONGEST_NAME:
                self._remember(question, decision)
        return decision

    def authorize_by_resource_type(
        self, caller: Caller, operation: AclOperation, resource_type: AclResourceType
    ) -> bool:
        """Whether there is a resource of this type to which the caller may do this."""
        question = (caller.principal, caller.peer_host, operation._value_, resource_type._value_, None)
        decision = self._decisions.get(question)
        if decision is None:
            # Whoever may do it to a resource that nobody has heard of: super users, above all.
            decision = self._decide(caller.principal, caller.peer_host, operation, resource_type, "hardcode")
            decision = decision or self._has_any(caller, operation, resource_type)
            self._remember(question, decision)
        return decision

    def _remember(self, question: _Question, decision: bool) -> None:
        if len(self._decisions) >= _MOST_DECISIONS:
            self._decisions.clear()
        self._decisions[question] = decision

    def _decide(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType, name: str
    ) -> bool:
        who = str(principal)
        if who in self._super_users:
            return True
        hosts = (WILDCARD, host_address(host))
        spoken_of = allowed = False
        for bindings in self.acls.about(kind, name):
            spoken_of = True
            for binding in _of(bindings, who):
                if binding.host not in hosts:
                    continue
                if binding.permission is Permission.ALLOW:
                    allowed = allowed or binding.operation in _IMPLIED_BY[operation]
                elif binding.operation in (operation, AclOperation.ALL):
                    return False
        return allowed or (not spoken_of and self._allow_without_acls)

    def _has_any(self, caller: Caller, operation: AclOperation, kind: AclResourceType) -> bool:
        """By bindings for this very operation, or for all: nothing is implied here."""
        who, hosts = str(caller.principal), (WILDCARD, host_address(caller.peer_host))
        allowed: set[tuple[PatternType, str]] = set()
        denied: set[tuple[PatternType, str]] = set()
        for binding in self.acls:
            if (
                binding.resource_type is kind
                and binding.host in hosts
                and binding.principal in (who, ANYBODY)
                and binding.operation in (operation, AclOperation.ALL)
            ):
                of_permission = allowed if binding.permission is Permission.ALLOW else denied
                of_permission.add((binding.pattern_type, binding.resource_name))
        everything = (PatternType.LITERAL, WILDCARD)
        if everything in denied:
            return False
        return everything in allowed or any(not _is_covered(pattern, denied) for pattern in allowed)


def _of(bindings: OfPrincipals, who: str) -> Iterator[AclBinding]:
    yield from bindings.get(who, ())
    if who != ANYBODY:
        yield from bindings.get(ANYBODY, ())


def _is_covered(pattern: tuple[PatternType, str], denied: set[tuple[PatternType, str]]) -> bool:
    """Whether all that an allowing pattern speaks of is denied by one other."""
    kind, name = pattern
    if kind is PatternType.LITERAL and pattern in denied:
        return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))


def host_address(host: str) -> str:
    """An address as Java writes it, which is how bindings name hosts: IPv6 without any abbreviation."""
    if ":" not in host:
        return host
    import ipaddress

    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    scope = f"%{address.scope_id}" if address.scope_id else ""
    bits = int(address)
    return ":".join(f"{bits >> shift & 0xFFFF:x}" for shift in range(112, -1, -16)) + scope
