"""How a catalog fails, whatever it is kept in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbroker.catalog.rows import TopicRow


class CatalogError(Exception):
    """The catalog could not take a write, or could not be opened."""


class CatalogFull(CatalogError):
    """The disk is full, or descriptors are short: nothing was written, trying again later may work."""


class CatalogTooNew(CatalogError):
    """It was written by a newer kbroker."""


class CatalogUnreadable(CatalogError):
    """It cannot be opened or read."""


class CatalogDamaged(CatalogUnreadable):
    """Its files are not what was written to them."""


class CatalogConflict(CatalogError):
    """What a write rested on has changed, by another broker or an earlier write: nothing was written."""


class TopicConflict(CatalogConflict):
    """``found``: the topic as it is in the catalog; None: there is none."""

    def __init__(self, what: str, found: TopicRow | None) -> None:
        super().__init__(what)
        self.found = found


class FactConflict(CatalogConflict):
    """``found``: the value that the catalog has; None: it has none."""

    def __init__(self, name: str, found: str | None) -> None:
        super().__init__(f"the catalog's {name} was changed meanwhile")
        self.found = found
