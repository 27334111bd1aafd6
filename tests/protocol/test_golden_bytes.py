"""Bytes of other programs: a few by hand from the protocol's description, stored records by Apache Kafka 4.3.1.

`golden/stored_records.jsonl` holds, for every version of every stored record, bytes that Kafka's own classes wrote and
the values that its own JSON converters found in them.
"""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from quire.protocol import uuids
from quire.protocol.codec import decode, encode
from quire.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from quire.protocol.messages.consumer_group_heartbeat import Assignment, ConsumerGroupHeartbeatResponse
from quire.protocol.messages.fetch import FetchRequest, FetchTopic, ReplicaState
from quire.protocol.messages.headers import RequestHeader, ResponseHeader
from quire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from quire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from quire.protocol.schema import Field, Message, Struct
from tests.protocol.every_message import EVERY_MESSAGE

BY_HAND: list[tuple[Message, int, str]] = [
    (RequestHeader(request_api_key=18, request_api_version=0, correlation_id=1, client_id="me"), 1,
     "0012 0000 00000001 0002 6d65"),
    # The client id keeps its two-byte length in the flexible version.
    (RequestHeader(request_api_key=18, request_api_version=3, correlation_id=1, client_id=None), 2,
     "0012 0003 00000001 ffff 00"),
    (ResponseHeader(correlation_id=258), 0, "00000102"),
    (ResponseHeader(correlation_id=258), 1, "00000102 00"),
    (ApiVersionsRequest(), 0, ""),
    (ApiVersionsRequest(client_software_name="kcat", client_software_version="1.7"), 3, "05 6b636174 04 312e37 00"),
    (ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)]), 0,
     "0023 00000001 0012 0000 0004"),
    (ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, max_version=4)], finalized_features_epoch=3), 3,
     "0000 02 0012 0000 0004 00 00000000 01 01 08 0000000000000003"),
    (MetadataRequest(topics=None), 1, "ffffffff"),
    (MetadataRequest(topics=[]), 4, "00000000 01"),
    (MetadataRequest(topics=[MetadataRequestTopic(name="a")], allow_auto_topic_creation=False), 9,
     "02 02 61 00 00 00 00 00"),
    (ProduceRequest(acks=-1, timeout_ms=1500, topic_data=[
        TopicProduceData(name="t", partition_data=[PartitionProduceData(index=2, records=b"\xaa\xbb")])]), 3,
     "ffff ffff 000005dc 00000001 0001 74 00000001 00000002 00000002 aabb"),
    (ProduceRequest(acks=1, timeout_ms=1500, topic_data=[
        TopicProduceData(name="t", partition_data=[PartitionProduceData(index=2, records=b"\xaa\xbb")])]), 9,
     "00 0001 000005dc 02 02 74 02 00000002 03 aabb 00 00 00"),
    # Two tagged fields of a request, and an empty array after another one.
    (FetchRequest(cluster_id="c", replica_state=ReplicaState(replica_id=5, replica_epoch=6), max_wait_ms=1,
                  topics=[FetchTopic(topic_id=bytes(range(16)))]), 15,
     "00000001 00000000 7fffffff 00 00000000 ffffffff 02 000102030405060708090a0b0c0d0e0f 01 00 01 01"
     "02 00 02 02 63 01 0d 00000005 0000000000000006 00"),
    # A nullable structure starts with a byte that says whether it is null.
    (ConsumerGroupHeartbeatResponse(assignment=None), 0, "00000000 0000 00 00 00000000 00000000 ff 00"),
    (ConsumerGroupHeartbeatResponse(assignment=Assignment()), 0, "00000000 0000 00 00 00000000 00000000 01 01 00 00"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "version", "text"), BY_HAND)
def test_messages_have_the_bytes_that_the_protocol_describes(message: Message, version: int, text: str) -> None:
    data = bytes.fromhex(text)
    assert encode(message, version).hex() == data.hex()
    assert decode(type(message), data, version) == message


_CLASSES = {message.__name__: message for message in EVERY_MESSAGE}
STORED = [
    json.loads(line)
    for line in (Path(__file__).parent / "golden" / "stored_records.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("golden", STORED, ids=lambda golden: f"{golden['message']}-{golden['version']}")
def test_stored_records_have_the_bytes_that_kafka_writes(golden: dict[str, Any]) -> None:
    message, version, data = _CLASSES[golden["message"]], golden["version"], bytes.fromhex(golden["bytes"])
    decoded = decode(message, data, version)
    assert decoded == from_json(message, golden["values"])
    assert encode(decoded, version).hex() == golden["bytes"]


def from_json(structure: type[Struct], values: dict[str, Any]) -> Struct:
    fields = {field.name: field for field in structure.FIELDS}
    named = {re.sub(r"(?<=.)([A-Z])", r"_\1", key).lower(): value for key, value in values.items()}
    return structure(**{name: value_from_json(fields[name].kind, fields[name], named[name]) for name in named})


def value_from_json(kind: str, field: Field, value: Any) -> Any:
    if value is None:
        return None
    if kind == "array":
        return [value_from_json(field.of if isinstance(field.of, str) else "struct", field, item) for item in value]
    if kind == "struct":
        return from_json(field.structure, value)
    if kind == "uuid":
        return uuids.from_text(value)
    if kind == "binary":
        return base64.b64decode(value)
    return value
