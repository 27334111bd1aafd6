"""Turns a message class and a version into one flat Python function that decodes it.

The function takes `(data, pos)` and returns `(message, pos)`. Adjacent fixed-size fields, together with the length of
the next variable one, are read by a single `unpack_from`; structures are inlined. It is safe on malicious input:

- A count is compared with the remaining bytes before anything is allocated: n elements need n times the size of the
  smallest element. The elements and tags of a whole message are limited too (`limits.elements_max`).
- Slices past the end are too short, so `pos` is behind the end, which is checked once at the end. Reading there raises
  IndexError or struct.error. All of these become ProtocolError.
- Schemas do not recurse, so neither do decoders.

Indexing and slicing is faster with bytes than with a memoryview, so messages are copied into bytes first, except
messages with records, and headers, which are followed by other data.

The function is as lenient as Kafka (any negative length is null, tags may be in any order, the last of two equal tags
counts), except that a known tag must have the size that it claims.
"""

from collections.abc import Callable
from struct import Struct as Packing
from struct import error as struct_error
from struct import unpack_from
from typing import Any

from quire.protocol import varints
from quire.protocol.errors import ProtocolError
from quire.protocol.limits import elements_max
from quire.protocol.packing import FIXED, SHORT_ROW, SIZES, short_rows
from quire.protocol.schema import FRESH, Field, Header, Message, Struct
from quire.protocol.source import Source
from quire.protocol.tags import keep_unknown, read_unknown


def compile_decoder(message: type[Message], version: int) -> Callable[[Any, int], tuple[Any, int]]:
    function: Callable[[Any, int], tuple[Any, int]] = _Decoder(message, version).source.function(
        "decode", f"decoder of {message.__name__} version {version}"
    )
    return function


def decoder_source(message: type[Message], version: int) -> str:
    """The source of the decoder, for reading."""
    return _Decoder(message, version).source.text()


def _has_records(structure: type[Struct]) -> bool:
    return any(
        field.kind == "record_batches" or (isinstance(field.of, type) and _has_records(field.of))
        for field in structure.FIELDS
    )


class _Decoder:
    def __init__(self, message: type[Message], version: int) -> None:
        self.version = version
        self.flexible = message.FLEXIBLE is not None and version >= message.FLEXIBLE
        self.views = issubclass(message, Header) or _has_records(message)
        self._elements_max = elements_max(message.__name__)
        self._run: list[tuple[str, str]] = []
        title = f"{message.__name__} version {version}"

        def fail(problem: object) -> ProtocolError:
            return ProtocolError(f"{title}: {problem}")

        self.source = source = Source(
            new=object.__new__,
            fail=fail,
            varint=varints.read,
            varint_tail=varints.read_tail,
            keep_unknown=keep_unknown,
            read_unknown=read_unknown,
            unpack_from=unpack_from,
            past_the_end=(struct_error, IndexError),
        )
        with source.block("def decode(data, pos)"):
            with source.block(f"if data.__class__ is not {'memoryview' if self.views else 'bytes'}"):
                source.line(f"data = {'memoryview' if self.views else 'bytes'}(data)")
            source.line("size = len(data)")
            source.line(f"room = {self._elements_max}")
            with source.block("try"):
                self._structure(message, "message")
                self._flush()
            with source.block("except UnicodeDecodeError as problem"):
                source.line("raise fail(problem) from None")
            with source.block("except past_the_end"):
                source.line("raise fail('ends too early') from None")
            with source.block("if pos > size"):
                source.line("raise fail('ends too early')")
            source.line("return message, pos")

    def _structure(self, structure: type[Struct], owner: str) -> None:
        source = self.source
        source.line(f"{owner} = new({source.bind(structure.__name__, structure)})")
        source.line(f"{owner}.unknown_tags = None")
        tagged = []
        for field in structure.FIELDS:
            target = f"{owner}.{field.name}"
            if not field.in_version(self.version):
                self._default(field, target)
            elif field.tagged_in(self.version):
                self._default(field, target)
                tagged.append(field)
            else:
                self._field(field, target)
        if self.flexible:
            self._tags(sorted(tagged, key=lambda field: field.tag or 0), owner)

    def _field(self, field: Field, target: str) -> None:
        self._value(field.kind, field, target, nullable=field.nullable_in(self.version))

    def _value(self, kind: str, field: Field, target: str, *, nullable: bool) -> None:
        if kind in FIXED:
            self._read(FIXED[kind], target)
        elif kind == "struct":
            self._struct(field, target, nullable=nullable)
        elif kind == "array":
            self._array(field, target, nullable=nullable)
        else:
            self._text_or_bytes(kind, field, target, nullable=nullable)

    def _text_or_bytes(self, kind: str, field: Field, target: str, *, nullable: bool) -> None:
        source = self.source
        value = "data[pos:end]"
        if self.views and kind != "record_batches":
            value += ".tobytes()"
        if kind == "string":
            value += ".decode()"
        compact = self.flexible and not field.legacy
        self._read("B" if compact else "h" if kind == "string" else "i", "n")
        self._flush()
        if compact:
            with source.block("if n > 127"):
                source.line("n, pos = varint_tail(data, pos, n)")
                if kind == "string":
                    with source.block("if n > 0x8000"):
                        source.line(f"raise fail('{field.name} is too long')")
        with source.block("if n > 0" if compact else "if n >= 0"):
            source.line("end = pos + n - 1" if compact else "end = pos + n")
            source.line(f"{target} = {value}")
            source.line("pos = end")
        self._null_branch(field, target, nullable=nullable)

    def _null_branch(self, field: Field, target: str, *, nullable: bool) -> None:
        with self.source.block("else"):
            self.source.line(f"{target} = None" if nullable else f"raise fail('{field.name} must not be null')")

    def _struct(self, field: Field, target: str, *, nullable: bool) -> None:
        source = self.source
        inner = source.variable(f"{field.name}_")
        if not nullable:
            self._structure(field.structure, inner)
            source.line(f"{target} = {inner}")
            return
        # Kafka marks null with the byte -1, but inside a tagged field with the varint 0.
        tagged = field.tagged_in(self.version)
        self._read("B" if tagged else "b", "n")
        self._flush()
        with source.block("if n > 0" if tagged else "if n >= 0"):
            self._structure(field.structure, inner)
            self._flush()
            source.line(f"{target} = {inner}")
        self._null_branch(field, target, nullable=True)

    def _array(self, field: Field, target: str, *, nullable: bool) -> None:
        source = self.source
        self._read("B" if self.flexible else "i", "n")
        self._flush()
        if self.flexible:
            with source.block("if n > 127"):
                source.line("n, pos = varint_tail(data, pos, n)")
            source.line("n -= 1")
        with source.block("if n >= 0"):
            with source.block(f"if n * {max(1, self._smallest_element(field))} > size - pos"):
                source.line(f"raise fail('{field.name} has more elements than bytes')")
            self._take_room()
            self._elements(field, target)
        self._null_branch(field, target, nullable=nullable)

    def _elements(self, field: Field, target: str) -> None:
        source = self.source
        if isinstance(field.of, str) and field.of in FIXED and field.of != "uuid":
            letter = FIXED[field.of]
            rows = source.bind(f"unpack_{letter}s", [row.unpack_from for row in short_rows(letter)])
            with source.block(f"if n <= {SHORT_ROW}"):
                source.line(f"{target} = list({rows}[n](data, pos))")
            with source.block("else"):
                source.line(f"{target} = list(unpack_from(f'>{{n}}{letter}', data, pos))")
            source.line(f"pos += {SIZES[field.of]} * n")
            return
        items = source.variable("items")
        item = source.variable(f"{field.name}_")
        source.line(f"{target} = {items} = []")
        with source.block("for _ in range(n)"):
            if isinstance(field.of, str):
                self._value(field.of, field, item, nullable=False)
            else:
                self._structure(field.structure, item)
            self._flush()
            source.line(f"{items}.append({item})")

    def _take_room(self) -> None:
        self.source.line("room -= n")
        with self.source.block("if room < 0"):
            self.source.line(f"raise fail('more than {self._elements_max} array elements and tags')")

    def _tags(self, known: list[Field], owner: str) -> None:
        source = self.source
        self._read("B", "n")
        self._flush()
        with source.block("if n"):
            with source.block("if n > 127"):
                source.line("n, pos = varint_tail(data, pos, n)")
            self._take_room()
            if not known:
                source.line(f"pos = read_unknown({owner}, data, pos, n)")
                return
            tag, end = source.variable("tag"), source.variable("end")
            with source.block("for _ in range(n)"):
                source.line(f"{tag}, pos = varint(data, pos)")
                source.line(f"{end}, pos = varint(data, pos)")
                source.line(f"{end} += pos")
                for field in known:
                    with source.block(f"{'if' if field is known[0] else 'elif'} {tag} == {field.tag}"):
                        self._field(field, f"{owner}.{field.name}")
                        self._flush()
                with source.block("else"):
                    source.line(f"pos = keep_unknown({owner}, {tag}, data, pos, {end})")
                with source.block(f"if pos != {end}"):
                    source.line(f"raise fail(f'tag {{{tag}}} has another size than it says')")

    def _default(self, field: Field, target: str) -> None:
        source = self.source
        if field.default is not FRESH:
            source.line(f"{target} = {field.default!r}")
        elif field.kind == "array":
            source.line(f"{target} = []")
        else:
            structure = field.structure
            inner = source.variable(f"{field.name}_")
            source.line(f"{target} = {inner} = new({source.bind(structure.__name__, structure)})")
            source.line(f"{inner}.unknown_tags = None")
            for part in structure.FIELDS:
                self._default(part, f"{inner}.{part.name}")

    def _read(self, letter: str, target: str) -> None:
        """Adds to the run of fixed-size values that `_flush` reads at once."""
        self._run.append((letter, target))

    def _flush(self) -> None:
        if not self._run:
            return
        letters = "".join(letter for letter, _ in self._run)
        targets = ", ".join(target for _, target in self._run)
        if letters == "B":
            self.source.line(f"{targets} = data[pos]")
        else:
            name = self.source.bind(f"unpack_{letters.replace('?', 'o')}", Packing(">" + letters).unpack_from)
            self.source.line(f"{targets}{',' if len(self._run) == 1 else ''} = {name}(data, pos)")
        self.source.line(f"pos += {Packing('>' + letters).size}")
        self._run.clear()

    def _smallest_element(self, field: Field) -> int:
        if isinstance(field.of, str):
            return self._smallest(field.of, field)
        return self._smallest_structure(field.structure)

    def _smallest_structure(self, structure: type[Struct]) -> int:
        """The smallest size of a structure in this version."""
        size = 1 if self.flexible else 0
        for field in structure.FIELDS:
            if field.in_version(self.version) and not field.tagged_in(self.version):
                size += self._smallest(field.kind, field)
        return size

    def _smallest(self, kind: str, field: Field) -> int:
        if kind in SIZES:
            return SIZES[kind]
        if kind == "struct":
            return 1 if field.nullable_in(self.version) else self._smallest_structure(field.structure)
        if kind == "string" and (field.legacy or not self.flexible):
            return 2
        return 1 if self.flexible else 4
