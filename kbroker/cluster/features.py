"""Cluster features (KIP-584): the levels this broker supports, and those in force (finalized).

A feature is in force at its highest supported level until UpdateFeatures lowers it; level 0 means that
it is off and it is then not listed as finalized. What was changed outlives a restart. The epoch rises
with every change: clients believe the answer with the highest one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kbroker.catalog import facts
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from kbroker.catalog.database import Database

# The transaction protocol of KIP-890; at 2 a Java client no longer adds partitions to a transaction itself.
TRANSACTION_VERSION = 2

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3

_FACT = "features"


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
        Feature("eligible.leader.replicas.version", 0, 1),
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

    def __init__(self, database: Database, known: Mapping[str, str]) -> None:
        """``known``: the catalog's facts."""
        self._database = database
        stored = json.loads(known.get(_FACT, "{}"))
        levels: dict[str, int] = stored.get("levels", {})
        self._levels = {
            feature.name: min(levels.get(feature.name, feature.max_level), feature.max_level)
            for feature in SUPPORTED
        }
        self.epoch: int = stored.get("epoch", 0)
        # What the catalog holds once the writes under way are committed.
        self._levels_written, self._epoch_written = dict(self._levels), self.epoch

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
        changed = {update.name: update.level for update in updates}
        self._epoch_written += 1
        epoch = self._epoch_written
        self._levels_written = {**self._levels_written, **changed}

        def committed(write: Pending[None]) -> None:
            try:
                write.result()
            except Exception as error:
                result.fail(error)
                return
            self._levels.update(changed)
            self.epoch = epoch
            result.resolve(epoch)

        fact = json.dumps({"epoch": epoch, "levels": self._levels_written})
        facts.save(self._database, _FACT, fact).then(committed)
        return result

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
