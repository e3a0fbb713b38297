"""The ACL bindings of a broker: stored in the catalog, held in memory by the resources that they speak of.

A change counts, for everybody and at once, when it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from kbroker.pending import Pending, mapped
from kbroker.security.acl_bindings import WILDCARD, AclBinding
from kbroker.security.acls import AclResourceType, PatternType

if TYPE_CHECKING:
    from kbroker.catalog.interface import Catalog

TABLE = "acls"
_PRESENT = "true"

OfPrincipals = dict[str, list[AclBinding]]
"""The bindings of one pattern, by principal."""


class AclStore:
    def __init__(self, catalog: Catalog, stored: Iterable[str]) -> None:
        """``stored``: the keys of its table."""
        self._catalog = catalog
        self._listeners: list[Callable[[], None]] = []
        self._bindings: dict[AclBinding, None] = {}  # in the order in which they came
        self._literal: dict[tuple[AclResourceType, str], OfPrincipals] = {}
        self._prefixed: dict[AclResourceType, dict[str, OfPrincipals]] = {}
        self._prefix_lengths: dict[AclResourceType, list[int]] = {}
        self._apply(map(AclBinding.of_text, stored), ())

    def __iter__(self) -> Iterator[AclBinding]:
        return iter(tuple(self._bindings))

    def __len__(self) -> int:
        return len(self._bindings)

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def about(self, resource_type: AclResourceType, name: str) -> Iterator[OfPrincipals]:
        """The bindings that speak of a resource."""
        for pattern in (name,) if name == WILDCARD else (name, WILDCARD):
            found = self._literal.get((resource_type, pattern))
            if found is not None:
                yield found
        prefixed = self._prefixed.get(resource_type)
        if prefixed:
            for length in takewhile(len(name).__ge__, self._prefix_lengths[resource_type]):
                found = prefixed.get(name[:length])
                if found is not None:
                    yield found

    # changes

    def create(self, bindings: Iterable[AclBinding]) -> Pending[None] | None:
        new = [binding for binding in dict.fromkeys(bindings) if binding not in self._bindings]
        return self._save(new, ())

    def delete(self, bindings: Iterable[AclBinding]) -> Pending[None] | None:
        return self._save((), list(dict.fromkeys(bindings)))

    def _save(self, added: Collection[AclBinding], removed: Collection[AclBinding]) -> Pending[None] | None:
        changes: dict[str, str | None] = {binding.to_text(): _PRESENT for binding in added}
        changes.update((binding.to_text(), None) for binding in removed)
        if not changes:
            return None
        return mapped(self._catalog.save_entries(TABLE, changes), lambda _: self._apply(added, removed))

    def _apply(self, added: Iterable[AclBinding], removed: Iterable[AclBinding]) -> None:
        for binding in added:
            if binding not in self._bindings:
                self._bindings[binding] = None
                self._of_pattern(binding).setdefault(binding.principal, []).append(binding)
        for binding in removed:
            if binding in self._bindings:
                del self._bindings[binding]
                self._remove(binding)
        for kind, prefixed in self._prefixed.items():
            self._prefix_lengths[kind] = sorted({len(prefix) for prefix in prefixed})
        for listener in self._listeners:
            listener()

    def _of_pattern(self, binding: AclBinding) -> OfPrincipals:
        kind, name = binding.resource_type, binding.resource_name
        if binding.pattern_type is PatternType.PREFIXED:
            return self._prefixed.setdefault(kind, {}).setdefault(name, {})
        return self._literal.setdefault((kind, name), {})

    def _remove(self, binding: AclBinding) -> None:
        of_pattern = self._of_pattern(binding)
        of_pattern[binding.principal].remove(binding)
        if of_pattern[binding.principal]:
            return
        del of_pattern[binding.principal]
        if of_pattern:
            return
        if binding.pattern_type is PatternType.PREFIXED:
            del self._prefixed[binding.resource_type][binding.resource_name]
        else:
            del self._literal[binding.resource_type, binding.resource_name]
