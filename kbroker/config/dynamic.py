"""Configs altered at run time: checked, made durable, put in force, told to those who care.

Invariants:
- A resource's alteration is taken as a whole or refused as a whole; the refusal is an ApiError.
- An alteration is in force, and listeners are called, only after the store has it. Alterations of one
  resource that overlap build on each other, so that of two APPENDs none is lost.
- A topic's configs live in the registry of topics (``topic.configs``), all others here. Levels of loggers are
  not stored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from kbroker.config import checks, loggers
from kbroker.config.broker_configs import BROKER_CONFIGS
from kbroker.config.definition import LIST, ConfigDef, InvalidConfig, to_text
from kbroker.config.protection import broken_promises
from kbroker.config.resources import (
    Change,
    Operation,
    ResourceType,
    apply_to_list,
    differences,
    is_operation,
    repeated,
)
from kbroker.config.settings import Settings
from kbroker.config.topic_configs import TOPIC_CONFIGS
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode

logger = logging.getLogger("kbroker.config")

Resource = tuple[ResourceType, str]
Listener = Callable[[ResourceType, str, frozenset[str]], None]

_WITH_LISTS = {ResourceType.BROKER: BROKER_CONFIGS, ResourceType.TOPIC: TOPIC_CONFIGS}


class ConfiguredTopic(Protocol):
    configs: dict[str, str]


class ConfiguredTopics(Protocol):
    def get(self, name: str) -> ConfiguredTopic | None: ...


class Reconfigurable(Protocol):
    """A part of the broker that judges values by more than their definitions, as TLS does by files."""

    def check(self, altered: Mapping[str, str | None]) -> None:
        """Whether these may be put in force, None for those removed. Raises ValueError."""

    def settings_changed(self, names: Collection[str]) -> None:
        """They are in force, or were set once more to what they are: what they name may have changed."""


class ConfigStore(Protocol):
    """Where alterations outlive the process: the catalog."""

    def save_configs(
        self, resource_type: int, resource_name: str, changes: Mapping[str, str | None]
    ) -> Pending[None]:
        """Set what has a value, remove what has none."""


class DynamicConfigs:
    def __init__(
        self,
        settings: Settings,
        store: ConfigStore,
        stored: Iterable[tuple[int, str, str, str]],
        topics: ConfiguredTopics,
    ) -> None:
        """Puts what is ``stored`` for this broker and the cluster in force.

        ``stored``: resource types, resource names, config names, values.
        """
        self._settings = settings
        self._store = store
        self._topics = topics
        self._configs: dict[Resource, dict[str, str]] = {}
        self._wished: dict[Resource, dict[str, str]] = {}
        self._writing: dict[Resource, int] = {}
        self._listeners: list[Listener] = []
        self.reconfigurables: list[Reconfigurable] = []
        for type_, resource, name, value in stored:
            if type_ != ResourceType.TOPIC and type_ in ResourceType.__members__.values():
                self._configs.setdefault((ResourceType(type_), resource), {})[name] = value
        cluster = self._configs.setdefault((ResourceType.BROKER, ""), {})
        cluster.setdefault(checks.MIN_INSYNC_REPLICAS, str(settings[checks.MIN_INSYNC_REPLICAS]))
        self._put_broker_configs_in_force()

    def on_change(self, listener: Listener) -> None:
        """``listener(resource type, resource name, config names)`` is called after configs changed."""
        self._listeners.append(listener)

    def configs(self, type_: ResourceType, name: str) -> Mapping[str, str]:
        """What a resource has of its own, as texts."""
        if type_ is ResourceType.TOPIC:
            topic = self._topics.get(name)
            return {} if topic is None else topic.configs
        return self._configs.get((type_, name), {})

    def names(self, type_: ResourceType) -> list[str]:
        """The resources, other than topics, that have configs of their own."""
        return sorted(name for kind, name in self._configs if kind is type_)

    def alter(
        self, type_: int, name: str, changes: Sequence[Change], *, validate_only: bool = False
    ) -> Pending[None] | None:
        """Make single changes (IncrementalAlterConfigs). None: in force now."""
        self._check_request([change.name for change in changes])
        nulls = [each.name for each in changes if each.value is None and each.operation != Operation.DELETE]
        _refuse_nulls(nulls)
        if type_ == ResourceType.BROKER_LOGGER:
            self._alter_loggers(name, changes, validate_only=validate_only)
            return None
        resource = self._resource(type_, name)
        configs = dict(self._state(resource))
        for change in changes:
            self._apply(resource[0], configs, change)
        return self._take(resource, configs, [change.name for change in changes], validate_only=validate_only)

    def replace(
        self,
        type_: int,
        name: str,
        configs: Sequence[tuple[str, str | None]],
        *,
        validate_only: bool = False,
    ) -> Pending[None] | None:
        """Replace all that a resource has (AlterConfigs). None: in force now."""
        self._check_request([each for each, _ in configs])
        _refuse_nulls([each for each, value in configs if value is None])
        if type_ == ResourceType.BROKER_LOGGER:
            raise _unknown_type(type_)
        resource = self._resource(type_, name)
        texts = {each: value for each, value in configs if value is not None}
        altered = differences(self._state(resource), texts)
        return self._take(resource, texts, altered, validate_only=validate_only)

    def _check_request(self, names: Sequence[str]) -> None:
        twice = repeated(names)
        if twice:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{', '.join(twice)}: named twice")

    def _resource(self, type_: int, name: str) -> Resource:
        if type_ not in ResourceType.__members__.values():
            raise _unknown_type(type_)
        resource_type = ResourceType(type_)
        if resource_type is ResourceType.BROKER and name:
            checks.check_broker_name(self._settings, name)
            name = str(int(name))
        return resource_type, name

    def _state(self, resource: Resource) -> Mapping[str, str]:
        wished = self._wished.get(resource)
        return self.configs(*resource) if wished is None else wished

    def _apply(self, type_: ResourceType, configs: dict[str, str], change: Change) -> None:
        name, number, value = change
        if not is_operation(number):
            if type_ is ResourceType.BROKER:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"{name}: there is no operation {number}")
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        operation = Operation(number)
        if operation is Operation.DELETE or value is None:
            configs.pop(name, None)
        elif operation is Operation.SET:
            configs[name] = value
        else:
            definition = _list_definition(type_, name, operation)
            current = configs.get(name)
            if current is None:
                current = to_text(definition.default) or ""
            configs[name] = apply_to_list(operation, current, value)

    def _take(
        self, resource: Resource, configs: dict[str, str], altered: Collection[str], *, validate_only: bool
    ) -> Pending[None] | None:
        try:
            self._check(resource, configs, altered)
        except InvalidConfig as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None
        changes = differences(self._state(resource), configs)
        if resource[0] is ResourceType.BROKER:
            self._check_reconfigurables({each: configs.get(each) for each in altered})
        if validate_only:
            return None
        if not changes:
            self._tell_reconfigurables(resource[0], altered)
            return None
        saving = self._store.save_configs(*resource, changes)
        if saving.done:
            saving.result()
            self._commit(resource, changes)
            return None
        return self._commit_later(resource, configs, changes, saving)

    def _check(self, resource: Resource, configs: Mapping[str, str], altered: Collection[str]) -> None:
        type_, name = resource
        if type_ is ResourceType.TOPIC:
            checks.check_topic(self._settings, name, configs)
            if self._topics.get(name) is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name}.")
        elif type_ is ResourceType.BROKER:
            checks.check_broker(self._settings, name, configs, altered)
        elif type_ is ResourceType.CLIENT_METRICS:
            checks.check_client_metrics(name, configs)
        else:
            checks.check_group(self._settings, name, configs)

    def _check_reconfigurables(self, altered: Mapping[str, str | None]) -> None:
        for each in self.reconfigurables:
            try:
                each.check(altered)
            except ValueError as error:
                raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None

    def _tell_reconfigurables(self, type_: ResourceType, names: Collection[str]) -> None:
        if type_ is ResourceType.BROKER:
            for each in self.reconfigurables:
                each.settings_changed(names)

    def _commit_later(
        self,
        resource: Resource,
        configs: dict[str, str],
        changes: dict[str, str | None],
        saving: Pending[None],
    ) -> Pending[None]:
        result: Pending[None] = Pending()
        self._wished[resource] = configs
        self._writing[resource] = self._writing.get(resource, 0) + 1
        topic = self._topics.get(resource[1]) if resource[0] is ResourceType.TOPIC else None

        def saved(write: Pending[None]) -> None:
            self._writing[resource] -= 1
            if not self._writing[resource]:
                del self._writing[resource], self._wished[resource]
            try:
                write.result()
                # A topic that was deleted meanwhile took its configs along, even if its name is in use again.
                if topic is None or self._topics.get(resource[1]) is topic:
                    self._commit(resource, changes)
            except Exception as error:
                result.fail(error)
            else:
                result.resolve(None)

        saving.then(saved)
        return result

    def _commit(self, resource: Resource, changes: Mapping[str, str | None]) -> None:
        type_, name = resource
        configs = dict(self.configs(type_, name))
        for each, value in changes.items():
            if value is None:
                configs.pop(each, None)
            else:
                configs[each] = value
        if type_ is ResourceType.TOPIC:
            topic = self._topics.get(name)
            if topic is not None:
                topic.configs = configs
        elif configs:
            self._configs[resource] = configs
        else:
            self._configs.pop(resource, None)
        if type_ is ResourceType.BROKER:
            self._put_broker_configs_in_force()
        for listener in self._listeners:
            listener(type_, name, frozenset(changes))
        self._tell_reconfigurables(type_, changes)

    def _put_broker_configs_in_force(self) -> None:
        own = str(self._settings["node.id"])
        self._settings.replace_dynamic(
            _valid(self.configs(ResourceType.BROKER, "")), _valid(self.configs(ResourceType.BROKER, own))
        )

    def _alter_loggers(self, name: str, changes: Sequence[Change], *, validate_only: bool) -> None:
        checks.check_node_id(self._settings, name)
        loggers.check(changes)
        if not validate_only:
            loggers.apply(changes)
            names = frozenset(change.name for change in changes)
            for listener in self._listeners:
                listener(ResourceType.BROKER_LOGGER, name, names)


def _list_definition(type_: ResourceType, name: str, operation: Operation) -> ConfigDef:
    """The definition of a LIST config, the only kind that takes APPEND and SUBTRACT."""
    definitions = _WITH_LISTS.get(type_, {})
    definition = definitions.get(name)
    if definition is None or definition.type is not LIST:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{name}: {operation.name} is for lists, and this is none")
    return definition


def _refuse_nulls(names: Sequence[str]) -> None:
    if names:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{', '.join(names)}: the value is missing")


def _unknown_type(type_: int) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, f"Resources of type {int(type_)} have no configs to alter.")


def _valid(configs: Mapping[str, str]) -> dict[str, str]:
    """Without what an older or newer kbroker stored and this one cannot take."""
    valid: dict[str, str] = {}
    promised = broken_promises(configs)
    if promised:
        logger.warning("altered at run time, but without effect: %s", promised)
    for name, text in configs.items():
        definition = BROKER_CONFIGS.get(name)
        try:
            if definition is not None:
                definition.parse(text)
            valid[name] = text
        except InvalidConfig as error:
            logger.warning("a stored config is ignored: %s", error)
    return valid
