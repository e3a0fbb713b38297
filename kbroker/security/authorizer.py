"""What decides whether a caller may do something. Without an authorizer everybody may do everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kbroker.quotas.throttling import RequestThrottle
    from kbroker.security.acl_store import AclStore
    from kbroker.security.acls import AclOperation, AclResourceType
    from kbroker.security.principal import Principal


class Caller(Protocol):
    """Who asks, and from where."""

    @property
    def principal(self) -> Principal: ...
    @property
    def peer_host(self) -> str: ...
    @property
    def api_name(self) -> str:
        """What they ask with."""

    @property
    def throttle(self) -> RequestThrottle | None:
        """What its request uses of its quotas; None: it has none."""


class Authorizer(Protocol):
    @property
    def acls(self) -> AclStore:
        """What it decides by."""

    def authorize(
        self, caller: Caller, operation: AclOperation, resource_type: AclResourceType, name: str
    ) -> bool: ...
    def authorize_by_resource_type(
        self, caller: Caller, operation: AclOperation, resource_type: AclResourceType
    ) -> bool: ...
