"""How a message class declares its wire format.

A message is a class whose annotated attributes are declared with the functions below:

    class DeleteTopicState(Struct):
        name: str | None = string("6+", nullable="6+", default=None)
        topic_id: bytes = uuid("6+")

Versions are written as in Kafka's schemas: "3+" since 3, "0-4" inclusive, "2" alone, "none" never. The class gets
slots, a keyword constructor in which every field has its default, equality and a short repr; `quire.protocol.codec`
compiles `FIELDS` into encoders and decoders. Nothing is compiled when a class is created, not even its constructor,
because a node uses a small part of the protocol and should not pay for the rest.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, Final, dataclass_transform

FRESH: Final = object()
"""The default of arrays and structures: a new empty one for every message."""

ALWAYS: Final = 1 << 15
"""Above every version: the end of an open range."""


@cache
def parse_versions(text: str) -> range:
    """The versions in "3+", "0-4", "2" or "none"."""
    if text == "none":
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), ALWAYS)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


class Field:
    """One declared field. `of` is the structure of a struct field, and the element (kind or structure) of an array."""

    __slots__ = ("default", "ignorable", "kind", "legacy", "name", "nullable", "of", "tag", "tagged", "versions")

    def __init__(
        self,
        kind: str,
        versions: str,
        default: object,
        *,
        of: "str | type[Struct] | None" = None,
        nullable: str = "none",
        tag: int | None = None,
        tagged: str = "none",
        ignorable: bool = False,
        legacy: bool = False,
    ) -> None:
        self.name = ""
        self.kind = kind
        self.of = of
        self.versions = versions
        self.nullable = nullable
        self.tag = tag
        self.tagged = tagged
        self.default = default
        self.ignorable = ignorable
        self.legacy = legacy

    def in_version(self, version: int) -> bool:
        return version in parse_versions(self.versions)

    def nullable_in(self, version: int) -> bool:
        return version in parse_versions(self.nullable)

    def tagged_in(self, version: int) -> bool:
        return version in parse_versions(self.tagged)

    @property
    def structure(self) -> "type[Struct]":
        """The class of a struct field, or of the elements of an array of structures."""
        assert isinstance(self.of, type), f"{self.name} holds no structure"
        return self.of


class _Tagged:
    # Separate from Struct, because attributes of a StructType class are fields of the wire format.
    __slots__ = ("unknown_tags",)
    unknown_tags: dict[int, bytes] | None
    """Tagged fields that this schema does not know, kept so that they can be encoded again; None if there are none."""


@dataclass_transform(kw_only_default=True)
class StructType(type):
    """Creates slots for the declared fields. Fields are not inherited: a wire format is declared in one place."""

    FIELDS: tuple[Field, ...]

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> "StructType":
        fields = []
        for key, value in list(namespace.items()):
            if isinstance(value, Field):
                value.name = key
                fields.append(value)
                del namespace[key]
        namespace["__slots__"] = tuple(field.name for field in fields)
        namespace["FIELDS"] = tuple(fields)
        return super().__new__(cls, name, bases, namespace)


class Struct(_Tagged, metaclass=StructType):
    """A structure inside a message, and the base of messages."""

    FIELDS: ClassVar[tuple[Field, ...]]

    def __init__(self, **values: Any) -> None:
        structure = type(self)
        # The compiled constructor replaces this one at its first use.
        structure.__init__ = compile_constructor(structure)  # type: ignore[method-assign]
        structure.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        for field in self.FIELDS:
            if getattr(self, field.name) != getattr(other, field.name):
                return False
        return self.unknown_tags == other.unknown_tags

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Shows only fields that differ from their default, as most fields do not."""
        shown = []
        for field in self.FIELDS:
            value = getattr(self, field.name)
            default = default_value(field)
            if value != default:
                shown.append(f"{field.name}={value!r}")
        if self.unknown_tags:
            shown.append(f"unknown_tags={self.unknown_tags!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


class Message(Struct):
    """A top-level structure: a request, a response, a header or a stored record."""

    API_KEY: ClassVar[int]
    """The key of the API, or of the record type; -1 if there is none."""
    VERSIONS: ClassVar[tuple[int, int]]
    """Oldest and newest version, inclusive."""
    FLEXIBLE: ClassVar[int | None]
    """The first version with compact lengths and tagged fields, if any."""


class Header(Message):
    """A message that is followed by other data in the same buffer."""


def compile_constructor(structure: type[Struct]) -> Any:
    """An `__init__` with one keyword per field and assignments only: about as fast as one written by hand."""
    namespace: dict[str, Any] = {"FRESH": FRESH}
    parameters = []
    body = []
    for field in structure.FIELDS:
        name = field.name
        if field.default is not FRESH:
            parameters.append(f"{name}={field.default!r}")
            body.append(f"    self.{name} = {name}\n")
            continue
        parameters.append(f"{name}=FRESH")
        fresh = "[]"
        if field.kind == "struct":
            namespace[f"{name}_structure"] = field.structure
            fresh = f"{name}_structure()"
        body.append(f"    self.{name} = {fresh} if {name} is FRESH else {name}\n")
    signature = ", ".join(["self", *(["*"] if parameters else []), *parameters])
    source = f"def __init__({signature}):\n{''.join(body)}    self.unknown_tags = None\n"
    exec(compile(source, f"<constructor of {structure.__name__}>", "exec"), namespace)
    constructor = namespace["__init__"]
    constructor.__qualname__ = f"{structure.__qualname__}.__init__"
    return constructor


def default_value(field: Field) -> Any:
    if field.default is not FRESH:
        return field.default
    return field.structure() if field.kind == "struct" else []


# The declarations. Each returns Any, so that `count: int = int32("0+")` means what it says: an attribute of type int
# with a default. Common options: `nullable`, the versions in which it may be null; `tag` and `tagged`, the number and
# versions of a tagged field; `ignorable`, silently dropped by versions that do not have it.


def int8(versions: str, *, default: int = 0, **options: Any) -> Any:
    return Field("int8", versions, default, **options)


def int16(versions: str, *, default: int = 0, **options: Any) -> Any:
    return Field("int16", versions, default, **options)


def int32(versions: str, *, default: int = 0, **options: Any) -> Any:
    return Field("int32", versions, default, **options)


def int64(versions: str, *, default: int = 0, **options: Any) -> Any:
    return Field("int64", versions, default, **options)


def uint16(versions: str, *, default: int = 0, **options: Any) -> Any:
    return Field("uint16", versions, default, **options)


def uint32(versions: str, *, default: int = 0, **options: Any) -> Any:
    return Field("uint32", versions, default, **options)


def float64(versions: str, *, default: float = 0.0, **options: Any) -> Any:
    return Field("float64", versions, default, **options)


def boolean(versions: str, *, default: bool = False, **options: Any) -> Any:
    return Field("boolean", versions, default, **options)


def uuid(versions: str, *, default: bytes = bytes(16), **options: Any) -> Any:
    """16 bytes; see `quire.protocol.uuids`."""
    return Field("uuid", versions, default, **options)


def string(versions: str, *, default: str | None = "", **options: Any) -> Any:
    """UTF-8 text. `legacy=True` keeps its two-byte length in flexible versions (the request header's client id)."""
    return Field("string", versions, default, **options)


def binary(versions: str, *, default: bytes | None = b"", **options: Any) -> Any:
    """Bytes that are copied out of the request."""
    return Field("binary", versions, default, **options)


def record_batches(versions: str, *, default: bytes | None = None, **options: Any) -> Any:
    """Record batches: a view of the request, which is valid only as long as the request's buffer."""
    return Field("record_batches", versions, default, **options)


def nested(structure: type[Struct], versions: str, *, default: object = FRESH, **options: Any) -> Any:
    """One structure inside another."""
    return Field("struct", versions, default, of=structure, **options)


def array(element: type[Struct] | Callable[..., Any], versions: str, *, default: object = FRESH, **options: Any) -> Any:
    """A list of structures, or of a basic type named by its function here: `array(int32, "0+")`."""
    of = element if isinstance(element, type) else element.__name__
    return Field("array", versions, default, of=of, **options)
