"""ACL bindings: who may, or may not, do what to which resources; and the filters that find bindings."""

from __future__ import annotations

import json
from typing import NamedTuple

from kbroker.security.acls import AclOperation, AclResourceType, PatternType, Permission

WILDCARD = "*"
"""As a literal resource: each of its type. As a host: each."""

ANYBODY = "User:*"


class AclBinding(NamedTuple):
    resource_type: AclResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: Permission

    def to_text(self) -> str:
        """As it is stored."""
        kind, name, pattern, principal, host, operation, permission = self
        return json.dumps([kind.name, pattern.name, name, principal, host, operation.name, permission.name])

    @classmethod
    def of_text(cls, text: str) -> AclBinding:
        kind, pattern, name, principal, host, operation, permission = json.loads(text)
        return cls(
            AclResourceType[kind],
            name,
            PatternType[pattern],
            principal,
            host,
            AclOperation[operation],
            Permission[permission],
        )


class AclFilter(NamedTuple):
    """What is ANY, or None, is not asked for."""

    resource_type: AclResourceType
    resource_name: str | None
    pattern_type: PatternType
    principal: str | None
    host: str | None
    operation: AclOperation
    permission: Permission

    def matches(self, binding: AclBinding) -> bool:
        return (
            self.resource_type in (AclResourceType.ANY, binding.resource_type)
            and self._matches_name(binding)
            and self.principal in (None, binding.principal)
            and self.host in (None, binding.host)
            and self.operation in (AclOperation.ANY, binding.operation)
            and self.permission in (Permission.ANY, binding.permission)
        )

    def _matches_name(self, binding: AclBinding) -> bool:
        """MATCH asks for what speaks of a resource of this name, the others for what has the name."""
        if self.pattern_type is not PatternType.MATCH:
            return self.pattern_type in (PatternType.ANY, binding.pattern_type) and self.resource_name in (
                None,
                binding.resource_name,
            )
        if self.resource_name is None:
            return True
        if binding.pattern_type is PatternType.PREFIXED:
            return self.resource_name.startswith(binding.resource_name)
        return binding.resource_name in (WILDCARD, self.resource_name)
