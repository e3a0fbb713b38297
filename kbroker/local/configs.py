"""Configs of topics, groups, this broker and the whole cluster, from code in the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from kbroker.local.calls import Access

if TYPE_CHECKING:
    from kbroker.config.description import Described
    from kbroker.config.resources import ResourceType
    from kbroker.pending import Pending
    from kbroker.requests.resources import Resources

ConfigValue = str | int | float | bool | Sequence[str]
Configured = Literal["topic", "group", "broker", "cluster"]


class Configs(Access):
    async def configs(self, what: Configured, name: str = "") -> list[Described]:
        """All that a topic or group of this name, or the broker, has, with the values in force."""
        from kbroker.operations.configs import describe_configs

        return await self._ask(describe_configs, *self._resource(what, name))

    async def alter_configs(
        self,
        what: Configured,
        name: str = "",
        *,
        values: Mapping[str, ConfigValue | None],
        validate_only: bool = False,
    ) -> None:
        """Set these, all of them or none; None takes one back to its default."""
        from kbroker.config.resources import Change, Operation
        from kbroker.operations.configs import alter_and_tell_configs, alter_configs

        type_, name = self._resource(what, name)
        changes = [
            Change(each, Operation.DELETE, None)
            if value is None
            else Change(each, Operation.SET, config_text(value))
            for each, value in values.items()
        ]

        def alter(resources: Resources) -> Pending[None] | None:
            if validate_only:
                return alter_configs(resources, type_, name, changes, validate_only=True)
            return alter_and_tell_configs(resources, type_, name, changes)

        await self._ask(alter)

    def _resource(self, what: Configured, name: str) -> tuple[ResourceType, str]:
        from kbroker.config.resources import ResourceType

        if what in ("topic", "group"):
            return ResourceType[what.upper()], name
        if name:
            raise ValueError(f"the {what} is this one: it needs no name")
        if what == "broker":
            return ResourceType.BROKER, str(self._calls.broker.cluster.node_id)
        if what == "cluster":
            return ResourceType.BROKER, ""
        raise ValueError(f"configs are those of a topic, a group, the broker or the cluster, not of {what!r}")


def config_text(value: ConfigValue) -> str:
    """As Kafka has it."""
    from kbroker.config.definition import to_text

    return to_text(value if isinstance(value, str | int | float) else tuple(value)) or ""
