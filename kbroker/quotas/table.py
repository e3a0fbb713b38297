"""The quotas that are set: described, altered, stored in the catalog, and told to who enforces them."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kbroker.catalog.rows import QUOTAS
from kbroker.pending import Pending, wait
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
        self._listeners: list[Callable[[Mapping[Entity, Values]], None]] = []
        self._altering: Pending[None] | None = None  # settles when the request that alters now is done

    def on_change(self, listener: Callable[[Mapping[Entity, Values]], None]) -> None:
        """``listener(quotas)`` is called with all the quotas, maybe none, of entities that were altered."""
        self._listeners.append(listener)

    def items(self) -> Iterable[tuple[Entity, Values]]:
        return self._quotas.items()

    # altering

    def alter(
        self, alterations: Sequence[Alteration], *, validate_only: bool
    ) -> Generator[Pending[Any] | None, None, Outcomes]:
        """What became of each entity. All that is permitted is stored together, and then in force.

        In steps: None where others may have a turn, a Pending to wait for. An entity that comes again is
        refused then, but what was asked for it before holds. So it is in Kafka.
        """
        while self._altering is not None:  # by another request: what it stores is what this one alters
            yield _observed(self._altering)
        altering = self._altering = Pending()
        outcomes: Outcomes = {}
        altered: dict[Entity, Values] = {}
        rows: dict[str, str | None] = {}
        try:
            for entity, changes in alterations:
                outcomes[entity] = self._judge(entity, changes, outcomes, altered)
                if outcomes[entity] is None:
                    rows[to_text(entity)] = json.dumps(altered[entity]) if altered[entity] else None
                yield None
        except BaseException:
            self._altered_all(altering)
            raise
        if validate_only or not rows:
            self._altered_all(altering)
            return outcomes
        return (yield from wait(self._save(rows, altered, outcomes, altering)))

    def _judge(
        self,
        entity: Entity,
        changes: Sequence[tuple[str, float | None]],
        outcomes: Outcomes,
        altered: dict[Entity, Values],
    ) -> ApiError | None:
        names = [name for name, _ in changes]
        if entity in outcomes or len(set(names)) < len(names):
            return ApiError(ErrorCode.INVALID_REQUEST, "An entity, or a quota of one, appears twice.")
        try:
            altered[entity] = self._altered(entity, changes)
        except ApiError as error:
            return error
        return None

    def _save(
        self,
        rows: Mapping[str, str | None],
        altered: Mapping[Entity, Values],
        outcomes: Outcomes,
        altering: Pending[None],
    ) -> Pending[Outcomes]:
        """Whoever asked may go away meanwhile: what is stored gets in force all the same."""
        result: Pending[Outcomes] = Pending()

        def saved(saving: Pending[None]) -> None:
            try:
                saving.result()
            except Exception as error:
                result.fail(error)
            else:
                self._put_in_force(altered)
                result.resolve(outcomes)
            finally:
                self._altered_all(altering)

        self._catalog.save_entries(QUOTAS, rows).then(saved)
        return result

    def _put_in_force(self, altered: Mapping[Entity, Values]) -> None:
        for entity, values in altered.items():
            if values:
                self._quotas[entity] = values
            else:
                self._quotas.pop(entity, None)
        for listener in self._listeners:
            listener(altered)

    def _altered_all(self, altering: Pending[None]) -> None:
        """The next request may alter."""
        self._altering = None
        altering.resolve(None)

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


def _observed(other: Pending[None]) -> Pending[None]:
    """Settles with the other one; who abandons it abandons no more than that."""
    observed: Pending[None] = Pending()
    other.then(lambda _: observed.resolve(None))
    return observed


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
