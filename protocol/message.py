"""How a message is declared: once, for all its versions.

`@message` and `@struct` turn an annotated class into a slotted, mutable record type. Its fields carry the
wire type and the versions that have it; the codecs are made from that (`cls.__schema__`) and nothing else.

    @message(api_key=0, kind="request", versions=(0, 13), flexible=9)
    class ProduceRequest:
        transactional_id: str | None = field(STRING, since=3, nullable_since=3, default=None)
        acks: int = field(INT16)

Every field has a default, so `ProduceRequest(acks=1)` is complete. Lists and structs are made anew for each
object, except for tagged struct fields, which are nearly always unset (three of them in every partition of a
fetch response): their default is one shared object that refuses assignment. To set one, assign a new struct.

Classes are cheap to make (some 440 of them exist, loaded on first use): `__init__` is generated when the
first object is made, equality and repr are generic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn, TypeVar, dataclass_transform

from kbroker.protocol.types import Array, FieldType, FixedType, ProtocolError

T = TypeVar("T")

ANY_VERSION: Final = 32767
UNSET: Final[Any] = type("Unset", (), {"__repr__": lambda self: "UNSET", "__slots__": ()})()


class Field:
    """One field of a message: its type and the versions in which it exists, is nullable, or is tagged."""

    __slots__ = (
        "default",
        "flexible",
        "ignorable",
        "name",
        "nullable_since",
        "since",
        "tag",
        "type",
        "until",
    )

    name: str

    def __init__(
        self,
        type: FieldType,
        since: int,
        until: int,
        nullable_since: int | None,
        default: Any,
        tag: int | None,
        ignorable: bool,
        flexible: bool,
    ) -> None:
        self.type = type
        self.since = since
        self.until = until
        self.nullable_since = nullable_since
        self.default = default
        self.tag = tag
        self.ignorable = ignorable
        self.flexible = flexible

    def present(self, version: int) -> bool:
        return self.since <= version <= self.until

    def nullable(self, version: int) -> bool:
        return self.nullable_since is not None and version >= self.nullable_since

    def default_value(self) -> Any:
        """What the field holds when nobody sets it: JSON's default, else the zero of its type."""
        if self.default is not UNSET:
            return self.default
        if isinstance(self.type, Array):
            return []
        if isinstance(self.type, type):
            return shared_default(self.type) if self.tag is not None else self.type()
        return self.type.default

    @property
    def shares_default(self) -> bool:
        """Whether one default value serves all objects."""
        return self.default is not UNSET or self.tag is not None or not isinstance(self.type, (Array, type))


def field(
    type: FieldType,
    *,
    since: int = 0,
    until: int = ANY_VERSION,
    nullable_since: int | None = None,
    default: Any = UNSET,
    tag: int | None = None,
    ignorable: bool = False,
    flexible: bool = True,
) -> Any:
    """Declare a field. `flexible=False` keeps the old layout in flexible versions (a header's client id)."""
    return Field(type, since, until, nullable_since, default, tag, ignorable, flexible)


class Schema:
    """What a declaration says. Of a struct only the fields matter: its message decides the rest."""

    __slots__ = (
        "api_key",
        "decoders",
        "encoders",
        "fields",
        "flexible",
        "kind",
        "name",
        "shared_default",
        "step_decoders",
        "step_encoders",
        "versions",
    )

    def __init__(
        self,
        name: str,
        fields: tuple[Field, ...],
        kind: str,
        api_key: int | None,
        versions: tuple[int, int],
        flexible: int | None,
    ) -> None:
        self.name = name
        self.fields = fields
        self.kind = kind
        self.api_key = api_key
        self.versions = versions
        self.flexible = flexible
        self.shared_default: Any = None
        # The compiled codec per version, filled on first use.
        self.decoders: dict[int, Callable[..., Any]] = {}
        self.encoders: dict[int, Callable[..., Any]] = {}
        self.step_decoders: dict[int, Callable[..., Any]] = {}
        self.step_encoders: dict[int, Callable[..., Any]] = {}

    def is_flexible(self, version: int) -> bool:
        return self.flexible is not None and version >= self.flexible

    def check_version(self, version: int) -> None:
        low, high = self.versions
        if not low <= version <= high:
            raise ProtocolError(f"{self.name} has versions {low} to {high}, not {version}")

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)


def has_lists(cls: type[Any]) -> bool:
    """Whether a message has lists of structs, which may be long."""
    return any(isinstance(f.type, Array) and not isinstance(f.type.of, FixedType) for f in schema_of(cls))


class Message:
    """What all message and struct classes have in common."""

    __slots__ = ()
    __schema__: Schema
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        schema = self.__schema__
        if getattr(other, "__schema__", None) is not schema:
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in schema.fields)

    def __repr__(self) -> str:
        shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in self.__schema__.fields)
        return f"{self.__schema__.name}({shown})"


def schema_of(cls: type[Any]) -> Schema:
    schema: Schema = cls.__schema__
    return schema


@dataclass_transform()
def struct(cls: type[T]) -> type[T]:
    """Declare a struct: part of a message, or of several."""
    return _declare(cls, "struct", None, (0, ANY_VERSION), None)


@dataclass_transform()
def message(
    *, kind: str, versions: tuple[int, int], flexible: int | None = None, api_key: int | None = None
) -> Callable[[type[T]], type[T]]:
    """Declare a message. `flexible` is the first version with compact lengths and tagged fields."""
    return lambda cls: _declare(cls, kind, api_key, versions, flexible)


def _declare(
    cls: type[T], kind: str, api_key: int | None, versions: tuple[int, int], flexible: int | None
) -> type[T]:
    namespace = dict(vars(cls))
    fields = []
    for name, value in vars(cls).items():
        if isinstance(value, Field):
            value.name = name
            fields.append(value)
            del namespace[name]
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    namespace["__slots__"] = tuple(f.name for f in fields)
    namespace["__init__"] = _first_init
    namespace["__schema__"] = Schema(cls.__name__, tuple(fields), kind, api_key, versions, flexible)
    return type(cls.__name__, (Message,), namespace)


def _first_init(self: Any, *args: Any, **kwargs: Any) -> None:
    """Stands in until the first object is made: making `__init__` for every class would slow the start."""
    cls = type(self)
    cls.__init__ = _make_init(cls)
    cls.__init__(self, *args, **kwargs)


def _make_init(cls: type[Any]) -> Callable[..., None]:
    namespace: dict[str, Any] = {"UNSET": UNSET}
    parameters, body = [], []
    for f in schema_of(cls):
        namespace[f"d_{f.name}"] = f.default_value() if f.shares_default else f.default_value
        if f.shares_default:
            parameters.append(f"{f.name}=d_{f.name}")
            body.append(f" self.{f.name} = {f.name}")
        else:
            made = "[]" if isinstance(f.type, Array) else f"d_{f.name}()"
            parameters.append(f"{f.name}=UNSET")
            body.append(f" self.{f.name} = {made} if {f.name} is UNSET else {f.name}")
    source = f"def __init__(self, {', '.join(parameters)}):\n" + ("\n".join(body) or " pass")
    exec(source, namespace)
    init: Callable[..., None] = namespace["__init__"]
    init.__qualname__ = f"{cls.__name__}.__init__"
    return init


def _refuse(self: Any, name: str, value: Any) -> NoReturn:
    struct_name = self.__schema__.name
    raise AttributeError(
        f"{name}: this {struct_name} is the shared default; assign a new {struct_name} instead"
    )


def shared_default(cls: type[Any]) -> Any:
    """The one object that stands in every unset tagged field of this struct type."""
    schema = schema_of(cls)
    if schema.shared_default is None:
        methods = {"__slots__": (), "__setattr__": _refuse, "__reduce__": lambda _: (shared_default, (cls,))}
        shared: Any = object.__new__(type(cls.__name__, (cls,), methods))
        for f in schema:
            object.__setattr__(shared, f.name, f.default_value())
        schema.shared_default = shared
    return schema.shared_default
