"""Turns a message class and a version into one flat Python function that encodes it.

The function takes `(message, out)` and appends to the bytearray `out`. With a list of parts as a third argument it adds
to that instead: `out` first, then file slices and large records with more bytes between them (`record_parts`).

Adjacent fixed-size fields are written by a single `pack`, together with the length of the next variable one if it fits
into one byte; structures are inlined. A field that the version does not have must be ignorable or have its default, as
in Kafka: dropping it silently would change the meaning of the message. Tagged fields are written if they differ from
their default.
"""

from collections.abc import Callable, Generator
from struct import Struct as Packing
from struct import error as struct_error
from struct import pack
from typing import Any

from quire.protocol import varints
from quire.protocol.errors import EncodeError
from quire.protocol.packing import FIXED, SHORT_ROW, SIZES, short_rows
from quire.protocol.record_parts import add_records, records_size
from quire.protocol.schema import FRESH, Field, Message, Struct
from quire.protocol.source import Source
from quire.protocol.tags import write_tags


def compile_encoder(message: type[Message], version: int) -> Callable[[Any, bytearray], None]:
    function: Callable[[Any, bytearray], None] = _Encoder(message, version).source.function(
        "encode", f"encoder of {message.__name__} version {version}"
    )
    return function


def compile_sliced_encoder(
    message: type[Message], version: int
) -> Callable[[Any, bytearray], Generator[None, None, None]]:
    """The same as a generator that yields after each element of an array of structures or strings."""
    function: Callable[[Any, bytearray], Generator[None, None, None]] = _Encoder(
        message, version, sliced=True
    ).source.function("encode", f"sliced encoder of {message.__name__} version {version}")
    return function


def encoder_source(message: type[Message], version: int) -> str:
    """The source of the encoder, for reading."""
    return _Encoder(message, version).source.text()


class _Encoder:
    def __init__(self, message: type[Message], version: int, *, sliced: bool = False) -> None:
        self.version = version
        self._sliced = sliced
        self.flexible = message.FLEXIBLE is not None and version >= message.FLEXIBLE
        self._out = "out"
        self._run: list[tuple[str, str]] = []
        title = f"{message.__name__} version {version}"

        def fail(problem: object) -> EncodeError:
            return EncodeError(f"{title}: {problem}")

        self.source = source = Source(
            fail=fail,
            write_varint=varints.write,
            write_tags=write_tags,
            add_records=add_records,
            records_size=records_size,
            pack=pack,
            struct_error=struct_error,
        )
        with source.block("def encode(message, out, parts=None)"):
            with source.block("try"):
                self._structure(message, "message")
                self._flush()
            with source.block("except struct_error as problem"):
                source.line("raise fail(problem) from None")
            with source.block("if parts is not None and out"):
                source.line("parts.append(out)")
            if sliced:
                source.line("yield None")  # Makes the function a generator even if the message has no arrays.

    def _structure(self, structure: type[Struct], value: str) -> None:
        tagged = []
        for field in structure.FIELDS:
            expression = f"{value}.{field.name}"
            if not field.in_version(self.version):
                self._leave_out(field, expression)
            elif field.tagged_in(self.version):
                tagged.append(field)
            else:
                self._field(field, expression)
        if self.flexible:
            self._tags(sorted(tagged, key=lambda field: field.tag or 0), value)

    def _leave_out(self, field: Field, expression: str) -> None:
        if not field.ignorable:
            with self.source.block(f"if {self._is_set(field, expression)}"):
                self.source.line(f"raise fail('cannot carry {field.name}')")

    def _field(self, field: Field, expression: str) -> None:
        self._value(field.kind, field, expression, nullable=field.nullable_in(self.version))

    def _value(self, kind: str, field: Field, expression: str, *, nullable: bool) -> None:
        if kind in FIXED:
            self._write(FIXED[kind], expression)
        elif kind == "struct":
            self._struct(field, expression, nullable=nullable)
        elif kind == "array":
            self._array(field, expression, nullable=nullable)
        else:
            self._text_or_bytes(kind, field, expression, nullable=nullable)

    def _text_or_bytes(self, kind: str, field: Field, expression: str, *, nullable: bool) -> None:
        source = self.source
        compact = self.flexible and not field.legacy
        source.line(f"x = {expression}")
        with source.block("if x is None"):
            if nullable:
                source.line(f"x, n = b'', {0 if compact else -1}")
            else:
                source.line(f"raise fail('{field.name} must not be null')")
        with source.block("else"):
            if kind == "string":
                source.line("x = x.encode()")
            size = "(len(x) if x.__class__ is not list else records_size(x))" if kind == "record_batches" else "len(x)"
            source.line(f"n = {size}{' + 1' if compact else ''}")
        if compact:
            self._flush_with_varint(too_long=field.name if kind == "string" else None)
        else:
            self._write("h" if kind == "string" else "i", "n")
            self._flush()
        if kind == "record_batches":
            with source.block("if parts is not None or x.__class__ is list"):
                source.line(f"{self._out} = add_records(x, {self._out}, parts)")
            with source.block("else"):
                source.line(f"{self._out} += x")
        else:
            source.line(f"{self._out} += x")

    def _struct(self, field: Field, expression: str, *, nullable: bool) -> None:
        source = self.source
        inner = source.variable(f"{field.name}_")
        source.line(f"{inner} = {expression}")
        if not nullable:
            if field.nullable != "none":
                self._refuse_null(field, inner)
            self._structure(field.structure, inner)
            return
        self._flush()
        # Kafka marks null with the byte -1, but inside a tagged field with the varint 0.
        null = 0 if field.tagged_in(self.version) else 0xFF
        with source.block(f"if {inner} is None"):
            source.line(f"{self._out}.append({null})")
        with source.block("else"):
            self._write("b", "1")
            self._structure(field.structure, inner)
            self._flush()

    def _refuse_null(self, field: Field, value: str) -> None:
        with self.source.block(f"if {value} is None"):
            self.source.line(f"raise fail('{field.name} must not be null')")

    def _array(self, field: Field, expression: str, *, nullable: bool) -> None:
        source = self.source
        items = source.variable("items")
        source.line(f"{items} = {expression}")
        length = f"len({items}) + 1" if self.flexible else f"len({items})"
        if nullable:
            length = f"{0 if self.flexible else -1} if {items} is None else {length}"
        elif field.nullable != "none":
            self._refuse_null(field, items)
        source.line(f"n = {length}")
        if self.flexible:
            self._flush_with_varint()
        else:
            self._write("i", "n")
            self._flush()
        with source.block(f"if {items}"):
            self._elements(field, items)

    def _elements(self, field: Field, items: str) -> None:
        source = self.source
        if field.of == "uuid":
            source.line(f"{self._out} += b''.join({items})")
        elif isinstance(field.of, str) and field.of in FIXED:
            letter = FIXED[field.of]
            rows = source.bind(f"pack_{letter}s", [row.pack for row in short_rows(letter)])
            source.line(f"n = len({items})")
            with source.block(f"if n <= {SHORT_ROW}"):
                source.line(f"{self._out} += {rows}[n](*{items})")
            with source.block("else"):
                source.line(f"{self._out} += pack(f'>{{n}}{letter}', *{items})")
        else:
            item = source.variable(f"{field.name}_")
            with source.block(f"for {item} in {items}"):
                if isinstance(field.of, str):
                    self._value(field.of, field, item, nullable=False)
                else:
                    self._structure(field.structure, item)
                self._flush()
                if self._sliced:
                    source.line("yield None")

    def _tags(self, known: list[Field], value: str) -> None:
        source = self.source
        if not known:
            self._write("x", "")
            self._flush()
            with source.block(f"if {value}.unknown_tags is not None"):
                source.line(f"del {self._out}[-1]")
                source.line(f"write_tags({self._out}, {{}}, {value}.unknown_tags)")
            return
        self._flush()
        if all(field.kind in FIXED and (field.tag or 0) < 128 for field in known):
            with source.block(f"if {value}.unknown_tags is None"):
                self._small_tags(known, value)
            with source.block("else"):
                self._any_tags(known, value)
        else:
            self._any_tags(known, value)

    def _small_tags(self, known: list[Field], value: str) -> None:
        """Writes the tagged fields that are set, with their number in front."""
        source = self.source
        start = source.variable("start")
        source.line(f"{start} = len({self._out})")
        source.line(f"{self._out}.append(0)")
        for field in known:
            expression = f"{value}.{field.name}"
            with source.block(f"if {self._is_set(field, expression)}"):
                self._write("B", str(field.tag))
                self._write("B", str(SIZES[field.kind]))
                self._write(FIXED[field.kind], expression)
                self._flush()
                source.line(f"{self._out}[{start}] += 1")

    def _any_tags(self, known: list[Field], value: str) -> None:
        source = self.source
        tags = source.variable("tags")
        out = self._out
        any_set = [self._is_set(field, f"{value}.{field.name}") for field in known]
        with source.block(f"if {' or '.join([*any_set, f'{value}.unknown_tags is not None'])}"):
            source.line(f"{tags} = {{}}")
            for field, is_set in zip(known, any_set, strict=True):
                with source.block(f"if {is_set}"):
                    self._out = source.variable("body")
                    source.line(f"{tags}[{field.tag}] = {self._out} = bytearray()")
                    self._field(field, f"{value}.{field.name}")
                    self._flush()
                    self._out = out
            source.line(f"write_tags({out}, {tags}, {value}.unknown_tags)")
        with source.block("else"):
            source.line(f"{out}.append(0)")

    def _is_set(self, field: Field, expression: str) -> str:
        """An expression that is true when the value differs from the field's default."""
        if field.default is None:
            return f"{expression} is not None"
        if field.default is not FRESH and field.kind != "binary":
            return f"{expression} != {field.default!r}"
        if field.kind == "struct":
            parts = [self._is_set(part, f"{expression}.{part.name}") for part in field.structure.FIELDS]
            set_somewhere = " or ".join([*parts, f"{expression}.unknown_tags is not None"])
            return f"({expression} is None or {set_somewhere})" if field.nullable != "none" else f"({set_somewhere})"
        return f"({expression} or {expression} is None)"

    def _write(self, letter: str, value: str) -> None:
        """Adds to the run of fixed-size values that `_flush` writes at once; the letter x is a zero byte."""
        self._run.append((letter, value))

    def _packed(self) -> str:
        letters = "".join(letter for letter, _ in self._run)
        values = ", ".join(value for _, value in self._run if value)
        name = self.source.bind(f"pack_{letters.replace('?', 'o')}", Packing(">" + letters).pack)
        return f"{name}({values})"

    def _flush(self) -> None:
        if not self._run:
            return
        if self._run == [("x", "")]:
            self.source.line(f"{self._out}.append(0)")
        else:
            self.source.line(f"{self._out} += {self._packed()}")
        self._run.clear()

    def _flush_with_varint(self, *, too_long: str | None = None) -> None:
        """Writes the run, and `n` after it."""
        source = self.source
        run = list(self._run)
        with source.block("if n < 128"):
            if run:
                self._write("B", "n")
                self._flush()
            else:
                source.line(f"{self._out}.append(n)")
        with source.block("else"):
            if too_long:
                with source.block("if n > 0x8000"):
                    source.line(f"raise fail('{too_long} is longer than 32767 bytes')")
            self._run = run
            self._flush()
            source.line(f"write_varint({self._out}, n)")
