"""An independent check: kafka-python, which reads Kafka's schemas at run time, reads and writes the same bytes."""

from importlib import import_module
from pkgutil import walk_packages
from typing import Any
from uuid import UUID

import kafka.protocol
import pytest
from hypothesis import HealthCheck, given, settings
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.data_container import DataContainer

from quire.protocol.codec import decode, encode
from quire.protocol.messages.api_versions import ApiVersionsResponse
from quire.protocol.messages.metadata import MetadataResponse
from quire.protocol.schema import Message, Struct
from tests.protocol.every_message import EVERY_VERSION
from tests.protocol.strategies import messages


def kafka_python_classes() -> dict[str, Any]:
    for module in walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if not module.name.startswith(("kafka.protocol.old", "kafka.protocol.generate")):
            import_module(module.name)
    return {found.__name__: found for found in ApiMessage.__subclasses__()}


THEIRS = kafka_python_classes()
SHARED = [
    (message, version)
    for message, version in EVERY_VERSION
    if message.__name__ in THEIRS and version <= THEIRS[message.__name__]._valid_versions[1]
]

OPERATIONS_NOT_ASKED_FOR = -(2**31)
"""Values that kafka-python decodes as None, and encodes again as given here."""


def assert_same_structure(ours: Struct, theirs: DataContainer, version: int) -> None:
    our_fields = [field for field in ours.FIELDS if field.in_version(version)]
    their_fields = [field for field in theirs._struct._fields if field.for_version_q(version)]
    for our_field, their_field in zip(our_fields, their_fields, strict=True):
        # kafka-python shortens cluster_authorized_operations and topic_authorized_operations.
        assert our_field.name.endswith(their_field.name)
        our_value, their_value = getattr(ours, our_field.name), getattr(theirs, their_field.name)
        if their_field.name == "authorized_operations" and our_value == OPERATIONS_NOT_ASKED_FOR:
            assert their_value is None
        else:
            assert_same_value(our_value, their_value, version)


def assert_same_value(ours: Any, theirs: Any, version: int) -> None:
    if isinstance(ours, list):
        for our_item, their_item in zip(ours, theirs, strict=True):
            assert_same_value(our_item, their_item, version)
    elif isinstance(theirs, DataContainer):
        assert_same_structure(ours, theirs, version)
    elif isinstance(theirs, UUID):
        assert ours == theirs.bytes
    elif isinstance(theirs, set):
        assert {bit for bit in range(32) if ours >> bit & 1} == theirs
    else:
        assert ours == theirs


def test_kafka_python_agrees_about_operations_that_were_not_asked_for() -> None:
    ours = MetadataResponse(cluster_id="", cluster_authorized_operations=OPERATIONS_NOT_ASKED_FOR)
    theirs = THEIRS["MetadataResponse"].decode(encode(ours, 8), version=8)
    assert_same_structure(ours, theirs, 8)
    theirs._header = None
    assert theirs.encode(version=8) == encode(ours, 8)


def test_kafka_python_knows_a_good_part_of_the_protocol() -> None:
    assert len(SHARED) > 300


@pytest.mark.parametrize(("message", "version"), SHARED)
def test_kafka_python_reads_and_writes_the_same_bytes(message: type[Message], version: int) -> None:
    their_class = THEIRS[message.__name__]

    @settings(max_examples=2, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(messages(message, version, plain=True, unknown_tags=False))
    def compare(ours: Message) -> None:
        if isinstance(ours, ApiVersionsResponse):
            ours.error_code = 0  # with any other error kafka-python decodes it as version 0
        data = encode(ours, version)
        theirs = their_class.decode(data, version=version)
        assert_same_structure(ours, theirs, version)
        theirs._header = None
        written = theirs.encode(version=version)
        assert written == data
        assert decode(message, written, version) == ours

    compare()
