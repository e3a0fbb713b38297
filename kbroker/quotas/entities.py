"""What a quota is for: a user, a client id, both, or an IP address; each by name, or the default of its kind.

And the quotas that there are: their names, and which values they may have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from ipaddress import ip_address

from kbroker.protocol.errors import ApiError, ErrorCode

USER, CLIENT_ID, IP = "user", "client-id", "ip"
TYPES = (USER, CLIENT_ID, IP)

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

_FRACTION = 1e-6  # below it a number counts as whole
_MAX_LONG = float(1 << 63)
_MAX_INT = float((1 << 31) - 1)
# The largest whole number that a quota may be; None: it may be any number.
_CLIENT_KEYS: Mapping[str, float | None] = {
    PRODUCER_BYTE_RATE: _MAX_LONG,
    CONSUMER_BYTE_RATE: _MAX_LONG,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_IP_KEYS: Mapping[str, float | None] = {CONNECTION_CREATION_RATE: _MAX_INT}

Entity = tuple[tuple[str, str | None], ...]
"""Types with names, in the order of the types' names; the name None is the default."""


def entity_of(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """Of a type that is given twice the last name counts."""
    return tuple(sorted(dict(parts).items()))


def check_entity(entity: Entity) -> None:
    """Raise ApiError if there can be no quotas for it."""
    types = [type_ for type_, _ in entity]
    if not types:
        raise _invalid("A quota is for somebody: the entity is empty.")
    for type_, name in entity:
        if type_ not in TYPES:
            raise _invalid(f"There are no quotas for entities of type {type_!r}.")
        if name == "":
            raise _invalid(f"The name of the {type_} is empty.")
    if IP not in types:
        return
    if len(types) > 1:
        raise _invalid("A quota of an IP address cannot be one of a user or client id, too.")
    name = entity[0][1]
    if name is not None and address(name) is None:
        raise _invalid(f"{name} is not an IP address.")


def check_value(entity: Entity, key: str, value: float) -> None:
    """Raise ApiError if this quota of a checked entity may not have this value."""
    keys = _IP_KEYS if entity[0][0] == IP else _CLIENT_KEYS
    if key not in keys:
        raise _invalid(f"There is no quota {key} for {describe(entity)}.")
    if not value > 0:
        raise _invalid(f"{key} must be above 0.")
    most = keys[key]
    if most is None:
        return
    if value > most:
        raise _invalid(f"{key} is too large.")
    if value % 1.0 > _FRACTION:
        raise _invalid(f"{key} must be a whole number.")


def address(name: str) -> str | None:
    """An IP address as connections have it; None: it is none."""
    try:
        parsed = ip_address(name[1:-1] if name[:1] == "[" and name[-1:] == "]" else name)
    except ValueError:
        return None
    mapped = getattr(parsed, "ipv4_mapped", None)
    return str(parsed if mapped is None else mapped)


def describe(entity: Entity) -> str:
    return ", ".join(f"{type_} {'<default>' if name is None else name}" for type_, name in entity)


def to_text(entity: Entity) -> str:
    """The entity as a key of the catalog."""
    return json.dumps(dict(entity), sort_keys=True)


def from_text(text: str) -> Entity:
    return entity_of(json.loads(text).items())


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
