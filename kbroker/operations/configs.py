"""Configs of topics, brokers, loggers, groups and client metrics subscriptions: described, altered, replaced.

The broker with the empty name is the whole cluster. An alteration is taken, or refused, as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.config import description, loggers
from kbroker.config.checks import check_node_id
from kbroker.config.resources import Operation, ResourceType
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.acls import AclOperation
from kbroker.topics.names import check_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbroker.config.description import Described
    from kbroker.config.resources import Change
    from kbroker.pending import Pending
    from kbroker.requests.resources import Resources

_MOST_CONFIGS = 10_000  # of one resource: far more than there are, and few enough to be checked at once


def describe_configs(resources: Resources, type_: ResourceType, name: str) -> list[Described]:
    """All that the resource has, with the values in force."""
    settings = resources.broker.settings
    dynamic_configs = resources.configs(type_, name, AclOperation.DESCRIBE_CONFIGS)
    if type_ is ResourceType.TOPIC:
        check_name(name)
        topic = resources.find_topic(name, AclOperation.DESCRIBE_CONFIGS)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        return description.describe_topic(settings, topic.configs)
    if type_ is ResourceType.BROKER:
        if not name:
            return description.describe_cluster(settings)
        check_node_id(settings, name)
        return description.describe_broker(settings)
    if type_ is ResourceType.BROKER_LOGGER:
        check_node_id(settings, name)
        return description.describe_loggers(loggers.levels())
    if not name:
        what = "group" if type_ is ResourceType.GROUP else "client metrics subscription"
        raise ApiError(ErrorCode.INVALID_REQUEST, f"A {what} needs a name.")
    configs = dynamic_configs.configs(type_, name)
    if type_ is ResourceType.GROUP:
        return description.describe_group(settings, configs)
    return description.describe_client_metrics(configs)


def alter_configs(
    resources: Resources, type_: int, name: str, changes: Sequence[Change], *, validate_only: bool = False
) -> Pending[None] | None:
    """Make single changes; None: in force now. ``type_``: as sent, a number without configs is refused."""
    _check_count(changes)
    configs = resources.configs(type_, name, AclOperation.ALTER_CONFIGS)
    return configs.alter(type_, name, changes, validate_only=validate_only)


def alter_and_tell_configs(
    resources: Resources, type_: ResourceType, name: str, changes: Sequence[Change]
) -> Pending[None] | None:
    """The same, told to the audit log, where there is one."""
    if resources.broker.audit is None:
        return alter_configs(resources, type_, name, changes)
    from kbroker.operations.auditing import audited
    from kbroker.requests.admin_changes import shown_config

    told = [
        {
            "name": each.name,
            "operation": Operation(each.operation).name.lower(),
            "value": shown_config(type_, each.name, each.value),
        }
        for each in changes
    ]
    return audited(
        resources,
        type_.name,
        name,
        lambda: alter_configs(resources, type_, name, changes),
        {"configs": told},
    )


def replace_configs(
    resources: Resources,
    type_: int,
    name: str,
    wanted: Sequence[tuple[str, str | None]],
    *,
    validate_only: bool = False,
) -> Pending[None] | None:
    """Replace all that the resource has of its own; None: in force now."""
    _check_count(wanted)
    configs = resources.configs(type_, name, AclOperation.ALTER_CONFIGS)
    return configs.replace(type_, name, wanted, validate_only=validate_only)


def _check_count(configs: Sequence[object]) -> None:
    if len(configs) > _MOST_CONFIGS:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"The resource has more than {_MOST_CONFIGS} configs.")
