"""An independent check: kio, which generates its classes from Kafka's own schemas, reads and writes the same bytes.

For each message and version that both know: what Quire encodes, kio decodes to the same values under the same names,
and encodes to the same bytes, which Quire decodes again.
"""

import io
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer

from quire.protocol import uuids
from quire.protocol.codec import decode, encode
from quire.protocol.schema import Message, Struct
from tests.protocol.every_message import EVERY_VERSION
from tests.protocol.strategies import messages

# "kio.schema.produce.v9.request:ProduceRequest", by class and version
_KIO_CLASSES = {
    (name.partition(":")[2], version): name
    for versions in schema_name_map.values()
    for version, classes in versions.items()
    for name in classes.values()
}
SHARED = [(message, version) for message, version in EVERY_VERSION if (message.__name__, version) in _KIO_CLASSES]


def kio_class(message: type[Message], version: int) -> Any:
    module, _, name = _KIO_CLASSES[message.__name__, version].partition(":")
    return getattr(import_module(module), name)


def assert_same_structure(ours: Struct, theirs: Any, version: int) -> None:
    our_fields = [field for field in ours.FIELDS if field.in_version(version)]
    their_fields = fields(theirs)
    # kio has no `_ms`, because such fields are times and durations there, and writes `type_` for `type`.
    assert [field.name.removesuffix("_ms") for field in our_fields] == [
        field.name.removesuffix("_ms").removesuffix("_") for field in their_fields
    ]
    for our_field, their_field in zip(our_fields, their_fields, strict=True):
        assert_same_value(getattr(ours, our_field.name), getattr(theirs, their_field.name), version)


def assert_same_value(ours: Any, theirs: Any, version: int) -> None:
    if isinstance(ours, list):
        assert len(ours) == len(theirs)
        for our_item, their_item in zip(ours, theirs, strict=True):
            assert_same_value(our_item, their_item, version)
    elif is_dataclass(theirs):
        assert_same_structure(ours, theirs, version)
    else:
        assert ours == as_basic(theirs, ours)


def as_basic(value: Any, ours: Any) -> Any:
    if isinstance(value, timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, UUID):
        return value.bytes
    if isinstance(value, IntEnum):
        return int(value)
    if value is None and ours == uuids.ZERO:
        return uuids.ZERO
    return value


def test_kio_knows_most_of_the_protocol() -> None:
    assert len(SHARED) > 550


@pytest.mark.parametrize(("message", "version"), SHARED)
def test_kio_reads_and_writes_the_same_bytes(message: type[Message], version: int) -> None:
    their_class = kio_class(message, version)
    read, write = entity_reader(their_class), entity_writer(their_class)

    @settings(max_examples=4, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(messages(message, version, plain=True, unknown_tags=False))
    def compare(ours: Message) -> None:
        data = encode(ours, version)
        theirs, size = read(data, 0)
        assert size == len(data)
        assert_same_structure(ours, theirs, version)
        written = io.BytesIO()
        write(written, theirs)
        assert written.getvalue() == data
        assert decode(message, written.getvalue(), version) == ours

    compare()
