"""The quotas that are set: described, altered, stored in the catalog, and told to who enforces them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kbroker.catalog.rows import QUOTAS
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.quotas.entities import (
    CLIENT_ID,
    IP,
    TYPES,
    USER,
    Entity,
    check_entity,
    check_value,
    from_text,
    to_text,
)

if TYPE_CHECKING:
    from kbroker.catalog.interface import Catalog

EXACT, DEFAULT, ANY = 0, 1, 2
"""How a component of a filter matches: this name, the default, or any of the type."""

Values = dict[str, float]
Outcomes = dict[Entity, ApiError | None]


class Alteration(NamedTuple):
    entity: Entity
    changes: Sequence[tuple[str, float | None]]  # a quota and its value; None: it is removed


class Component(NamedTuple):
    entity_type: str
    match_type: int
    match: str | None


class QuotaTable:
    def __init__(self, catalog: Catalog, stored: Iterable[tuple[str, str]]) -> None:
        """``stored``: keys and values of the table in the catalog."""
        self._catalog = catalog
        self._quotas: dict[Entity, Values] = {from_text(key): json.loads(value) for key, value in stored}
        self._listeners: list[Callable[[], None]] = []
        self._saving: Pending[None] | None = None

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def __bool__(self) -> bool:
        return bool(self._quotas)

    def items(self) -> Iterable[tuple[Entity, Values]]:
        return self._quotas.items()

    # altering

    def alter(
        self, alterations: Sequence[Alteration], *, validate_only: bool
    ) -> Outcomes | Pending[Outcomes]:
        """What became of each entity. All that is permitted is stored together, and then in force.

        An entity that comes again is refused then, but what was asked for it before holds. So it is in Kafka.
        """
        if self._saving is not None and not self._saving.done:
            return self._alter_later(self._saving, alterations, validate_only=validate_only)
        outcomes: Outcomes = {}
        altered: dict[Entity, Values] = {}
        for entity, changes in alterations:
            names = [name for name, _ in changes]
            if entity in outcomes or len(set(names)) < len(names):
                outcomes[entity] = ApiError(
                    ErrorCode.INVALID_REQUEST, "An entity, or a quota of one, appears twice."
                )
                continue
            try:
                altered[entity] = self._altered(entity, changes)
            except ApiError as error:
                outcomes[entity] = error
            else:
                outcomes[entity] = None
        if validate_only or not altered:
            return outcomes
        return self._save(altered, outcomes)

    def _alter_later(
        self, saving: Pending[None], alterations: Sequence[Alteration], *, validate_only: bool
    ) -> Pending[Outcomes]:
        """What is being stored is what these alter."""
        result: Pending[Outcomes] = Pending()

        def go_on(_: Pending[None]) -> None:
            if result.abandoned:
                return
            try:
                outcomes = self.alter(alterations, validate_only=validate_only)
            except Exception as error:
                result.fail(error)
                return
            if isinstance(outcomes, Pending):
                outcomes.then(result.follow)
            else:
                result.resolve(outcomes)

        saving.then(go_on)
        return result

    def _save(self, altered: dict[Entity, Values], outcomes: Outcomes) -> Pending[Outcomes]:
        """Whoever asked may go away meanwhile: what is stored gets in force all the same."""
        result: Pending[Outcomes] = Pending()
        saving = self._saving = self._catalog.save_entries(
            QUOTAS,
            {to_text(entity): json.dumps(values) if values else None for entity, values in altered.items()},
        )

        def saved(_: Pending[None]) -> None:
            try:
                saving.result()
            except Exception as error:
                result.fail(error)
                return
            for entity, values in altered.items():
                if values:
                    self._quotas[entity] = values
                else:
                    self._quotas.pop(entity, None)
            for listener in self._listeners:
                listener()
            result.resolve(outcomes)

        saving.then(saved)
        return result

    def _altered(self, entity: Entity, changes: Sequence[tuple[str, float | None]]) -> Values:
        check_entity(entity)
        values = dict(self._quotas.get(entity, {}))
        for name, value in changes:
            if value is None:
                values.pop(name, None)
            else:
                check_value(entity, name, value)
                values[name] = value
        return values

    # describing

    def describe(
        self, components: Sequence[Component], *, strict: bool
    ) -> Iterator[tuple[Entity, Mapping[str, float]] | None]:
        """The quotas of the entities that have all the components, ``strict``: and no others.

        None for an entity that is not wanted: there may be many of them.
        """
        wanted = _filter(components)
        for entity, values in list(self._quotas.items()):
            fits = (not strict or len(entity) == len(wanted)) and _matches(dict(entity), wanted)
            yield (entity, values) if fits else None


def _filter(components: Sequence[Component]) -> dict[str, Component]:
    wanted: dict[str, Component] = {}
    for component in components:
        type_, match_type, match = component
        if not type_:
            raise ApiError(ErrorCode.INVALID_REQUEST, "A component of the filter has no type.")
        if type_ in wanted:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"The filter names the type {type_} twice.")
        if type_ not in TYPES:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"There are no quotas for the type {type_}.")
        if match_type not in (EXACT, DEFAULT, ANY):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"There is no match type {match_type}.")
        if (match is None) == (match_type == EXACT):
            raise ApiError(ErrorCode.INVALID_REQUEST, "A name is given for an exact match, and for no other.")
        wanted[type_] = component
    if IP in wanted and (USER in wanted or CLIENT_ID in wanted):
        raise ApiError(ErrorCode.INVALID_REQUEST, "A filter for IP addresses cannot be one for clients, too.")
    return wanted


def _matches(entity: Mapping[str, str | None], wanted: Mapping[str, Component]) -> bool:
    for type_, (_, match_type, match) in wanted.items():
        if type_ not in entity or (match_type != ANY and entity[type_] != match):
            return False
    return True
