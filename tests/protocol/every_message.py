"""Every message class and every version of it, for tests that hold for all of them."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

import quire.protocol.messages
from quire.protocol.schema import Field, Message, Struct


def message_classes() -> list[type[Message]]:
    """In the order of their modules, and within a module in the order of declaration."""
    classes = []
    for module_info in iter_modules(quire.protocol.messages.__path__):
        module = import_module(f"quire.protocol.messages.{module_info.name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module.__name__:
                classes.append(value)
    return classes


def versions_of(message: type[Message]) -> range:
    oldest, newest = message.VERSIONS
    return range(oldest, newest + 1)


EVERY_MESSAGE = message_classes()
EVERY_VERSION = [(message, version) for message in EVERY_MESSAGE for version in versions_of(message)]


def full_message(message: type[Message], version: int) -> Message:
    """A message in which every field of the version is set, arrays have two elements and nothing is null."""
    return _full(message, version)


_BASIC: dict[str, Any] = {
    "int8": 7,
    "int16": 77,
    "int32": 7777,
    "int64": 7777777777,
    "uint16": 60_000,
    "uint32": 4_000_000_000,
    "float64": 7.75,
    "boolean": True,
    "uuid": bytes(range(16)),
    "string": "séven",
    "binary": b"\x00\x01\x02",
    "record_batches": b"batch",
}

S = TypeVar("S", bound=Struct)


def _full(structure: type[S], version: int) -> S:
    return structure(**{field.name: _value(field, version) for field in structure.FIELDS if field.in_version(version)})


def _value(field: Field, version: int) -> Any:
    if field.kind == "struct":
        return _full(field.structure, version)
    if field.kind != "array":
        return _BASIC[field.kind]
    if isinstance(field.of, str):
        return [_BASIC[field.of]] * 2
    return [_full(field.structure, version) for _ in range(2)]
