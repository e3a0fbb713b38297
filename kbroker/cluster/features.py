"""Cluster features (KIP-584): the levels this broker supports, and those in force (finalized).

A feature is in force at its highest supported level until UpdateFeatures lowers it; level 0 means that
it is off and it is then not listed as finalized. What was changed outlives a restart. The epoch rises
with every change: clients believe the answer with the highest one.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kbroker.catalog.errors import FactConflict
from kbroker.catalog.rows import FEATURES
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from kbroker.catalog.interface import Catalog

# The transaction protocol of KIP-890; at 2 a Java client no longer adds partitions to a transaction itself.
TRANSACTION_VERSION = 2

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class Feature(NamedTuple):
    name: str
    min_level: int
    max_level: int


METADATA_VERSION = Feature("metadata.version", 7, 30)

SUPPORTED: tuple[Feature, ...] = tuple(
    feature
    for feature in (
        METADATA_VERSION,
        Feature("transaction.version", 0, TRANSACTION_VERSION),
        Feature("group.version", 0, 1),
        Feature("streams.version", 0, 1),
        Feature("eligible.leader.replicas.version", 0, 1),
        Feature("share.version", 0, 1),
    )
    if feature.max_level > 0
)
_BY_NAME = {feature.name: feature for feature in SUPPORTED}


class FeatureUpdate(NamedTuple):
    name: str
    level: int
    upgrade_type: int


class Features:
    """The levels in force."""

    def __init__(self, catalog: Catalog, known: Mapping[str, str]) -> None:
        """``known``: the catalog's facts."""
        self._catalog = catalog
        self._take(known.get(FEATURES))
        self._updates: deque[tuple[list[FeatureUpdate], Pending[int]]] = deque()
        """One after the other: the first one is under way."""

    def level(self, name: str) -> int:
        """The level in force; 0: off, or not supported."""
        return self._levels.get(name, 0)

    def require(self, name: str, level: int) -> None:
        """Refuse what needs the feature when it is not in force at this level."""
        if self.level(name) < level:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)

    def finalized(self) -> dict[str, int]:
        return {name: level for name, level in self._levels.items() if level > 0}

    def check(self, update: FeatureUpdate) -> None:
        """Whether this update is permitted now."""
        problem = self._problem(update)
        if problem is not None:
            raise ApiError(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"Nothing was updated: {update.name} cannot be set to level {update.level}: {problem}.",
            )

    def apply(self, updates: list[FeatureUpdate]) -> int | Pending[int]:
        """Put checked updates in force, once they are durable; the result is the new epoch."""
        result: Pending[int] = Pending()
        self._updates.append((updates, result))
        if len(self._updates) == 1:
            self._apply_first()
        return result

    def _apply_first(self) -> None:
        updates, result = self._updates[0]
        try:
            for update in updates:
                self.check(update)  # once more: others may have been applied since
        except ApiError as error:
            self._end_first()
            result.fail(error)
            return
        levels = self._levels | {update.name: update.level for update in updates}
        fact = json.dumps({"epoch": self.epoch + 1, "levels": levels})

        def committed(write: Pending[None]) -> None:
            try:
                write.result()
            except FactConflict as conflict:  # another broker's update came first
                self._take(conflict.found)
                self._apply_first()
            except Exception as error:
                self._end_first()
                result.fail(error)
            else:
                self._take(fact)
                epoch = self.epoch
                self._end_first()
                result.resolve(epoch)

        self._catalog.save_fact(FEATURES, fact, expected=self._fact).then(committed)

    def _end_first(self) -> None:
        self._updates.popleft()
        if self._updates:
            self._apply_first()

    def _take(self, fact: str | None) -> None:
        """Put in force what the catalog holds."""
        self._fact = fact
        stored = json.loads(fact or "{}")
        levels: dict[str, int] = stored.get("levels", {})
        self._levels = {
            feature.name: min(levels.get(feature.name, feature.max_level), feature.max_level)
            for feature in SUPPORTED
        }
        self.epoch: int = stored.get("epoch", 0)

    def _problem(self, update: FeatureUpdate) -> str | None:
        feature = _BY_NAME.get(update.name)
        if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            return f"there is no upgrade type {update.upgrade_type}"
        if feature is None:
            return "this broker does not support the feature"
        if not feature.min_level <= update.level <= feature.max_level:
            return f"this broker supports levels {feature.min_level} to {feature.max_level}"
        current = self._levels[update.name]
        if update.level > current and update.upgrade_type != UPGRADE:
            return f"a downgrade cannot raise the level, which is {current}"
        if update.level < current and update.upgrade_type == UPGRADE:
            return f"an upgrade cannot lower the level, which is {current}"
        if update.level < current and feature is METADATA_VERSION:
            return f"metadata written at level {current} may not be readable below it"
        return None
