"""What administrators' requests changed, told to the audit log: one event per topic, config resource, group …

Loaded while there is an audit log. Values of configs are told unless they are, or may be, secret; of users
and tokens only their names.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from kbroker.config.broker_configs import broker_definition
from kbroker.config.resource_configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from kbroker.config.resources import ResourceType
from kbroker.config.topic_configs import TOPIC_CONFIGS
from kbroker.errors import error_code
from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.message import schema_of
from kbroker.requests.apis import BY_KEY
from kbroker.security.audit import SUCCESS

if TYPE_CHECKING:
    from kbroker.config.definition import ConfigDef
    from kbroker.requests.context import RequestContext
    from kbroker.security.audit import AuditLog

logger = logging.getLogger("kbroker.security.audit")

_MOST_CHANGES = 1000  # told of one request; the last event tells how many there are besides
HIDDEN = "(hidden)"
_UNKNOWN = "unknown"  # the client went away before its request was done
_CONFIGS: Mapping[ResourceType | None, Mapping[str, ConfigDef]] = {
    ResourceType.TOPIC: TOPIC_CONFIGS,
    ResourceType.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
    ResourceType.GROUP: GROUP_CONFIGS,
}
_NAMES = {code.value: code.name for code in ErrorCode}
_OPERATIONS = {0: "set", 1: "delete", 2: "append", 3: "subtract"}


class Change(NamedTuple):
    resource_type: str
    resource: str
    code: int
    details: Mapping[str, Any] | None = None


def audited(audit: AuditLog, context: RequestContext, body: Any, answer: Any) -> Any:
    """The same answer; what it says was changed is told when it is there."""
    changes = _CHANGES.get(context.api_key)
    if changes is None or getattr(body, "validate_only", False):
        return answer
    if not isinstance(answer, Pending):
        _tell(audit, context, changes(body, answer))
        return answer
    later: Pending[Any] = Pending(lambda: _abandoned(audit, context, answer))

    def arrived(settled: Pending[Any]) -> None:
        try:
            told = changes(body, settled.result())
        except Exception as error:
            code = error_code(error) or ErrorCode.UNKNOWN_SERVER_ERROR
            told = iter([Change("REQUEST", "", code)])
        _tell(audit, context, told)
        later.follow(settled)

    answer.then(arrived)
    return later


def _abandoned(audit: AuditLog, context: RequestContext, answer: Pending[Any]) -> None:
    answer.abandon()
    audit.change(
        principal=context.principal,
        address=context.peer_host,
        api=BY_KEY[context.api_key].name,
        resource_type="REQUEST",
        resource="",
        outcome=_UNKNOWN,
    )


def _tell(audit: AuditLog, context: RequestContext, changes: Iterator[Change]) -> None:
    try:
        _tell_each(audit, context, changes)
    except Exception:  # the request is done, and is to be answered
        logger.exception("what %s changed could not be told", BY_KEY[context.api_key].name)


def _tell_each(audit: AuditLog, context: RequestContext, changes: Iterator[Change]) -> None:
    api = BY_KEY[context.api_key].name
    for type_, name, code, details in islice(changes, _MOST_CHANGES):
        audit.change(
            principal=context.principal,
            address=context.peer_host,
            api=api,
            resource_type=type_,
            resource=name,
            outcome=SUCCESS if code == ErrorCode.NONE else _NAMES.get(code, str(code)),
            details=details,
        )
    more = sum(1 for _ in changes)
    if more:
        audit.change(
            principal=context.principal,
            address=context.peer_host,
            api=api,
            resource_type="REQUEST",
            resource="",
            outcome=_UNKNOWN,
            details={"more": more},
        )


# what each API changes


def _created_topics(body: Any, answer: Any) -> Iterator[Change]:
    asked = {topic.name: topic for topic in body.topics}
    for topic in answer.topics:
        wanted = asked[topic.name]
        configs = {each.name: _shown(TOPIC_CONFIGS.get(each.name), each.value) for each in wanted.configs}
        details = {"partitions": wanted.num_partitions, **({"configs": configs} if configs else {})}
        yield Change("TOPIC", topic.name, topic.error_code, details)


def _deleted_topics(body: Any, answer: Any) -> Iterator[Change]:
    for topic in answer.responses:
        yield Change("TOPIC", topic.name or topic.topic_id.hex(), topic.error_code)


def _new_partitions(body: Any, answer: Any) -> Iterator[Change]:
    counts = {topic.name: topic.count for topic in body.topics}
    for topic in answer.results:
        yield Change("TOPIC", topic.name, topic.error_code, {"partitions": counts.get(topic.name)})


def _deleted_records(body: Any, answer: Any) -> Iterator[Change]:
    for topic in answer.topics:
        for partition in topic.partitions:
            details = {"partition": partition.partition_index, "low_watermark": partition.low_watermark}
            yield Change("TOPIC", topic.name, partition.error_code, details)


def _altered_configs(body: Any, answer: Any) -> Iterator[Change]:
    asked = {(each.resource_type, each.resource_name): each for each in body.resources}
    for each in answer.responses:
        try:
            type_: ResourceType | None = ResourceType(each.resource_type)
        except ValueError:
            type_ = None
        wanted = asked.get((each.resource_type, each.resource_name))
        details = {} if wanted is None else {"configs": [_config(type_, config) for config in wanted.configs]}
        name = str(each.resource_type) if type_ is None else type_.name
        yield Change(name, each.resource_name, each.error_code, details)


def shown_config(type_: ResourceType | None, name: str, value: str | None) -> str | None:
    """The value of a config as it may be told."""
    if type_ is ResourceType.BROKER_LOGGER:
        return value
    if type_ is ResourceType.BROKER:
        return _shown(broker_definition(name), value)
    return _shown(_CONFIGS.get(type_, {}).get(name), value)


def _config(type_: ResourceType | None, config: Any) -> Mapping[str, Any]:
    value = shown_config(type_, config.name, config.value)
    operation = _OPERATIONS.get(getattr(config, "config_operation", 0), "unknown")
    return {"name": config.name, "operation": operation, "value": value}


def _shown(definition: ConfigDef | None, value: str | None) -> str | None:
    """A value, unless it is secret; what nobody knows may be."""
    return None if value is None else HIDDEN if definition is None or definition.sensitive else value


def _deleted_groups(body: Any, answer: Any) -> Iterator[Change]:
    for group in answer.results:
        yield Change("GROUP", group.group_id, group.error_code)


def _deleted_offsets(body: Any, answer: Any) -> Iterator[Change]:
    if answer.error_code or not answer.topics:
        yield Change("GROUP", body.group_id, answer.error_code)
    for topic in answer.topics:
        for partition in topic.partitions:
            details = {"topic": topic.name, "partition": partition.partition_index}
            yield Change("GROUP", body.group_id, partition.error_code, details)


def _altered_share_offsets(body: Any, answer: Any) -> Iterator[Change]:
    if answer.error_code or not answer.responses:
        yield Change("GROUP", body.group_id, answer.error_code)
    asked = {
        (topic.topic_name, partition.partition_index): partition.start_offset
        for topic in body.topics
        for partition in topic.partitions
    }
    for topic in answer.responses:
        for partition in topic.partitions:
            offset = asked.get((topic.topic_name, partition.partition_index))
            place = {"topic": topic.topic_name, "partition": partition.partition_index, "offset": offset}
            yield Change("GROUP", body.group_id, partition.error_code, place)


def _deleted_share_offsets(body: Any, answer: Any) -> Iterator[Change]:
    if answer.error_code or not answer.responses:
        yield Change("GROUP", body.group_id, answer.error_code)
    for topic in answer.responses:
        yield Change("GROUP", body.group_id, topic.error_code, {"topic": topic.topic_name})


def _created_acls(body: Any, answer: Any) -> Iterator[Change]:
    for asked, result in zip(body.creations, answer.results, strict=False):
        yield Change("ACL", asked.resource_name, result.error_code, _plain(asked))


def _deleted_acls(body: Any, answer: Any) -> Iterator[Change]:
    for asked, result in zip(body.filters, answer.filter_results, strict=False):
        if result.error_code or not result.matching_acls:
            yield Change("ACL", asked.resource_name_filter or "", result.error_code, _plain(asked))
        for acl in result.matching_acls:
            yield Change("ACL", acl.resource_name, acl.error_code, _plain(acl))


def _plain(entry: Any) -> Mapping[str, Any]:
    """The fields of an entry without secrets or lists."""
    return {
        field.name: value
        for field in schema_of(type(entry)).fields
        if isinstance(value := getattr(entry, field.name), str | int) and not field.name.startswith("error")
    }


def _altered_users(body: Any, answer: Any) -> Iterator[Change]:
    deleted = {each.name for each in body.deletions}
    for each in answer.results:
        yield Change("USER", each.user, each.error_code, {"deleted": each.user in deleted})


def _altered_quotas(body: Any, answer: Any) -> Iterator[Change]:
    asked = {_entity(each): each for each in body.entries}
    for each in answer.entries:
        entity = _entity(each)
        quotas = {op.key: None if op.remove else op.value for op in asked[entity].ops}
        yield Change("QUOTA", entity, each.error_code, quotas)


def _entity(entry: Any) -> str:
    parts = sorted((each.entity_type, each.entity_name) for each in entry.entity)
    return ", ".join(f"{type_} {'<default>' if name is None else name}" for type_, name in parts)


def _created_token(body: Any, answer: Any) -> Iterator[Change]:
    owner = f"{answer.principal_type}:{answer.principal_name}"
    yield Change("DELEGATION_TOKEN", answer.token_id, answer.error_code, {"owner": owner})


def _altered_token(body: Any, answer: Any) -> Iterator[Change]:
    yield Change("DELEGATION_TOKEN", "", answer.error_code, {"expiry_ms": answer.expiry_timestamp_ms})


def _updated_features(body: Any, answer: Any) -> Iterator[Change]:
    for each in body.feature_updates:
        yield Change("FEATURE", each.feature, answer.error_code, {"level": each.max_version_level})


_CHANGES: Mapping[int, Callable[[Any, Any], Iterator[Change]]] = {
    19: _created_topics,
    20: _deleted_topics,
    21: _deleted_records,
    30: _created_acls,
    31: _deleted_acls,
    33: _altered_configs,
    37: _new_partitions,
    38: _created_token,
    39: _altered_token,
    40: _altered_token,
    42: _deleted_groups,
    44: _altered_configs,
    47: _deleted_offsets,
    49: _altered_quotas,
    51: _altered_users,
    57: _updated_features,
    91: _altered_share_offsets,
    92: _deleted_share_offsets,
}
