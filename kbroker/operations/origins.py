"""Origins: writers who number what they send, and may send it again, even after the broker was killed.

An origin has a producer id of its own, kept in the catalog. So the logs know what they have of it, as of any
idempotent producer: the last five batches of a partition are told again, a gap is refused. That holds until
producer.id.expiration.ms after an origin's last record, and for so many origins; the one that was silent for
longest is forgotten first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kbroker.pending import Pending

if TYPE_CHECKING:
    from kbroker.broker import Broker

TABLE: Final = "origins"
_MOST: Final = 10_000


class Origins:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._producer_ids = {key: int(text) for key, text in broker.stored_entries(TABLE).items()}
        self._being_stored: dict[str, Pending[int]] = {}

    def producer_id(self, owner: str, name: str) -> int | Pending[int]:
        """Of the origin that one owner calls so."""
        key = f"{owner}\n{name}"
        known = self._producer_ids.pop(key, None)
        if known is not None:
            self._producer_ids[key] = known  # used last
            return known
        storing = self._being_stored.get(key)
        if storing is None:
            storing = self._being_stored[key] = Pending()
            allocated = self._broker.producer_ids.allocate()
            if isinstance(allocated, Pending):
                allocated.then(lambda allocated: self._allocated(key, allocated))
            else:
                self._store(key, allocated)
        own: Pending[int] = Pending()  # who goes away abandons nobody else's
        storing.then(own.follow)
        return own

    def _allocated(self, key: str, allocated: Pending[int]) -> None:
        try:
            self._store(key, allocated.result())
        except Exception as error:
            self._being_stored.pop(key).fail(error)

    def _store(self, key: str, producer_id: int) -> None:
        changes: dict[str, str | None] = {key: str(producer_id)}
        if len(self._producer_ids) >= _MOST:
            silent = next(iter(self._producer_ids))
            del self._producer_ids[silent]
            changes[silent] = None

        def stored(saved: Pending[None]) -> None:
            waiting = self._being_stored.pop(key)
            try:
                saved.result()
            except Exception as error:
                waiting.fail(error)
            else:
                self._producer_ids[key] = producer_id
                waiting.resolve(producer_id)

        self._broker.catalog.save_entries(TABLE, changes).then(stored)
