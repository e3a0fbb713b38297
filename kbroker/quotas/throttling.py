"""Clients held to their quotas: how long a client must wait after a request.

A quota is found as Kafka finds it. The first of these that is set counts, for each kind of quota:
user and client id; user and the default client id; user; default user and client id; both defaults; default
user; client id; default client id. What counts is used by all clients to which the same name applies: a
quota of a user is shared by the user's client ids, one of a client id by all users, and of a default each
user or client id has its own share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.quotas.entities import (
    CLIENT_ID,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)
from kbroker.quotas.meters import Rate, TokenBucket, Windows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kbroker.quotas.entities import Entity

PRODUCE, FETCH = 0, 1
_WRITE_TXN_MARKERS = 27  # of one broker to another
_DEFAULT = ""
_KEYS = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
_MAX_INT = (1 << 31) - 1
_FEWEST_METERS = 1000  # before unused ones are looked for

Tags = tuple[str, str]
"""User and client id whose use is measured together; empty: all of them."""
Meter = TypeVar("Meter", Rate, TokenBucket)


class Limit(NamedTuple):
    key: str
    tags: Tags
    bound: float


class ClientLimits(NamedTuple):
    """The quotas of one user with one client id; None: there is none."""

    produce: Limit | None
    fetch: Limit | None
    request: Limit | None
    mutation: Limit | None


class Throttling:
    """All quotas of users and client ids, and what was used of them lately. Exists while there are some."""

    def __init__(self, windows: Windows, mutation_windows: Windows, clock: Callable[[], int]) -> None:
        self.windows = windows
        self._mutation_windows = mutation_windows
        self.clock = clock
        self.generation = 0  # of the quotas
        self.throttled = 0
        """Requests whose clients had to wait."""
        self.throttled_ms = 0
        self._bounds: dict[str, dict[tuple[str | None, str | None], float]] = {key: {} for key in _KEYS}
        self._rates: dict[tuple[str, Tags], Rate] = {}
        self._buckets: dict[Tags, TokenBucket] = {}
        self._look_above = _FEWEST_METERS

    def put_in_force(self, quotas: Iterable[tuple[Entity, Mapping[str, float]]]) -> bool:
        """All quotas of these entities, as they are now. Whether there are any at all.

        What was used before still counts.
        """
        for entity, values in quotas:
            names = dict(entity)
            if IP in names:
                continue
            user, client_id = (
                (_DEFAULT if names[type_] is None else names[type_]) if type_ in names else None
                for type_ in (USER, CLIENT_ID)
            )
            for key, bounds in self._bounds.items():
                bound = values.get(key)
                if bound is None:
                    bounds.pop((user, client_id), None)
                else:
                    bounds[user, client_id] = bound
        self.generation += 1
        return any(self._bounds.values())

    def limits_of(self, user: str, client_id: str) -> ClientLimits | None:
        """None: nothing limits this client."""
        limits = ClientLimits(*(self._limit(key, user, client_id) for key in _KEYS))
        return limits if any(limits) else None

    def _limit(self, key: str, user: str, client_id: str) -> Limit | None:
        bounds = self._bounds[key]
        if not bounds:
            return None
        tags = _tags(bounds, user, client_id)
        bound = _bound(bounds, tags)
        return None if bound is None else Limit(key, tags, bound)

    def rate(self, limit: Limit, now_ms: int) -> Rate:
        key = (limit.key, limit.tags)
        meter = self._rates.get(key)
        if meter is None:
            self._forget_unused(now_ms)
            meter = self._rates[key] = Rate(self.windows)
        return meter

    def bucket(self, limit: Limit, now_ms: int) -> TokenBucket:
        meter = self._buckets.get(limit.tags)
        if meter is None:
            self._forget_unused(now_ms)
            meter = self._buckets[limit.tags] = TokenBucket(self._mutation_windows)
        return meter

    def _forget_unused(self, now_ms: int) -> None:
        """Clients choose their ids: what is remembered of them is bounded by what they use in a while."""
        if len(self._rates) + len(self._buckets) < self._look_above:
            return
        self._rates = {key: meter for key, meter in self._rates.items() if not meter.is_idle(now_ms)}
        self._buckets = {key: meter for key, meter in self._buckets.items() if not meter.is_idle(now_ms)}
        self._look_above = max(2 * (len(self._rates) + len(self._buckets)), _FEWEST_METERS)


class RequestThrottle:
    """One request of a client that has quotas: what it uses, and how long the client must wait for it."""

    __slots__ = (
        "_limits",
        "_mutation_throttle",
        "_mute",
        "_produce_ms",
        "_size_bytes",
        "_throttling",
        "api_key",
        "seconds",
        "strict",
        "throttle_ms",
    )

    def __init__(
        self,
        throttling: Throttling,
        limits: ClientLimits,
        size_bytes: int,
        mute: Callable[[int], None] | None,
    ) -> None:
        """``mute``: lets the connection wait for so many milliseconds."""
        self._throttling = throttling
        self._limits = limits
        self._size_bytes = size_bytes
        self._mute = mute
        self.seconds = 0.0  # on the event loop, up to the answer
        self._produce_ms: int | None = None  # the wait for the bytes of a Produce, once they are counted
        self._mutation_throttle = (0, 0)  # milliseconds, and when they began
        self.api_key = -1
        self.strict = False  # mutations above the quota are refused, not only followed by a wait
        self.throttle_ms: int | None = None  # what was decided

    # before it is executed

    def is_within(self, api_key: int) -> bool:
        """Whether no quota has the client wait for this request, as far as it can be told before.

        A Produce counts with this.
        """
        now_ms, request = self._throttling.clock(), self._limits.request
        if request is not None and self._throttling.rate(request, now_ms).throttle_ms(request.bound, now_ms):
            return False
        return api_key != PRODUCE or not self._produce_throttle_ms(now_ms)

    def taken(self, seconds: float) -> None:
        """It was answered without being decoded: what that took counts for the requests to come."""
        self.encoded(seconds)

    # while it is executed

    @property
    def most_fetch_bytes(self) -> int:
        """No more is read than the quota allows in all windows but one: it could never be answered."""
        limit = self._limits.fetch
        if limit is None:
            return _MAX_INT
        windows = self._throttling.windows
        return int(min(limit.bound * (windows.number - 1) * windows.size_ms / 1000, _MAX_INT))

    def fetched(self, size_bytes: int) -> bool:
        """Whether an answer with so many bytes may go out; else it has to be an empty one."""
        limit, now_ms = self._limits.fetch, self._throttling.clock()
        wait_ms = self._request_throttle_ms(now_ms)
        if limit is not None:
            rate = self._throttling.rate(limit, now_ms)
            rate.record(size_bytes, now_ms)
            wait_ms = max(wait_ms, rate.throttle_ms(limit.bound, now_ms))
            if wait_ms:
                rate.record(-size_bytes, now_ms)  # for it does not go out
        self._decide(wait_ms)
        return not wait_ms

    def mutate(self, partitions: int) -> None:
        """So many partitions are to be created or deleted. Raises ApiError if the quota does not allow it."""
        limit = self._limits.mutation
        if limit is None:
            return
        now_ms = self._throttling.clock()
        bucket = self._throttling.bucket(limit, now_ms)
        if not self.strict:
            bucket.record(partitions, limit.bound, now_ms)
        wait_ms = bucket.throttle_ms(limit.bound, now_ms)
        if wait_ms:
            self._mutation_throttle = (wait_ms, now_ms)
        if not self.strict:
            return
        if wait_ms:
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The quota of mutations is used up.")
        bucket.record(partitions, limit.bound, now_ms)

    @property
    def mutation_wait_ms(self) -> int:
        """How long there may be no more mutations, as it was when it was last asked."""
        return self._mutation_throttle[0]

    def may_mutate(self, partitions: int) -> bool:
        """The same for what the broker would do by itself for the client: it is done, or it is not."""
        limit = self._limits.mutation
        if limit is None:
            return True
        now_ms = self._throttling.clock()
        bucket = self._throttling.bucket(limit, now_ms)
        if bucket.throttle_ms(limit.bound, now_ms):
            return False
        bucket.record(partitions, limit.bound, now_ms)
        return True

    # when it is answered

    def answer(self, response: Any) -> None:
        """Tell the client in its answer how long it must wait, and let the wait begin."""
        if self.throttle_ms is None:
            now_ms = self._throttling.clock()
            wait_ms = 0 if self.api_key == _WRITE_TXN_MARKERS else self._request_throttle_ms(now_ms)
            if self.api_key == PRODUCE:
                wait_ms = max(wait_ms, self._produce_throttle_ms(now_ms))
            mutation_ms, began_ms = self._mutation_throttle
            self._decide(max(wait_ms, mutation_ms - (now_ms - began_ms)))
        if self.throttle_ms and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = self.throttle_ms

    def unanswered(self) -> None:
        """The same for a Produce with acks=0, whose time of execution does not count."""
        if self.throttle_ms is None:
            self._decide(self._produce_throttle_ms(self._throttling.clock()))

    def encoded(self, seconds: float) -> None:
        """To encode the answer took so long: it counts for the requests to come."""
        limit = self._limits.request
        if limit is not None:
            now_ms = self._throttling.clock()
            self._throttling.rate(limit, now_ms).record(seconds * 100, now_ms)

    def _produce_throttle_ms(self, now_ms: int) -> int:
        limit = self._limits.produce
        if limit is None:
            return 0
        if self._produce_ms is None:
            rate = self._throttling.rate(limit, now_ms)
            rate.record(self._size_bytes, now_ms)
            self._produce_ms = rate.throttle_ms(limit.bound, now_ms)
        return self._produce_ms

    def _request_throttle_ms(self, now_ms: int) -> int:
        limit = self._limits.request
        if limit is None:
            return 0
        rate = self._throttling.rate(limit, now_ms)
        rate.record(self.seconds * 100, now_ms)
        return min(rate.throttle_ms(limit.bound, now_ms), self._throttling.windows.size_ms)

    def _decide(self, wait_ms: int) -> None:
        self.throttle_ms = wait_ms
        if wait_ms > 0:
            self._throttling.throttled += 1
            self._throttling.throttled_ms += wait_ms
        if wait_ms > 0 and self._mute is not None:
            self._mute(wait_ms)


def _tags(bounds: dict[tuple[str | None, str | None], float], user: str, client_id: str) -> Tags:
    """Whose use is measured together with this client's."""
    if (user, client_id) in bounds or (user, _DEFAULT) in bounds:
        return user, client_id
    if (user, None) in bounds:
        return user, ""
    if (_DEFAULT, client_id) in bounds or (_DEFAULT, _DEFAULT) in bounds:
        return user, client_id
    if (_DEFAULT, None) in bounds:
        return user, ""
    return "", client_id


def _bound(bounds: dict[tuple[str | None, str | None], float], tags: Tags) -> float | None:
    user, client_id = tags
    candidates: tuple[tuple[str | None, str | None], ...]
    if user and client_id:
        candidates = (user, client_id), (user, _DEFAULT), (_DEFAULT, client_id), (_DEFAULT, _DEFAULT)
    elif user:
        candidates = (user, None), (_DEFAULT, None)
    elif client_id:
        candidates = (None, client_id), (None, _DEFAULT)
    else:
        return None
    return next((bounds[each] for each in candidates if each in bounds), None)
