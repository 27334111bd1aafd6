"""Each kind of bad input by name: refused with Kafka's error or a closed connection, and logged once."""

import struct

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.fuzz.victim import Victim

NO_CLIENT_ID = b"\xff\xff"
MEGABYTE = 1 << 20


def header(api_key: int, version: int) -> bytes:
    return struct.pack(">hhi", api_key, version, 1) + NO_CLIENT_ID


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


METADATA_1, METADATA_12 = header(3, 1), header(3, 12) + b"\0"
CLOSED: dict[str, bytes] = {
    "random bytes": bytes(range(255, 155, -1)),
    "text of another protocol": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a TLS greeting": bytes.fromhex("1603010200010001fc0303") + bytes(200),
    "negative length": struct.pack(">i", -1),
    "smallest length": struct.pack(">i", -(1 << 31)),
    "huge length": struct.pack(">i", (1 << 31) - 1),
    "length above the limit": struct.pack(">i", 20_000_001) + bytes(100),
    "empty frame": frame(b""),
    "half a header": frame(header(3, 1)[:5]),
    "unknown api": frame(header(12345, 0)),
    "negative api": frame(header(-7, 0)),
    "unknown version": frame(header(3, 127)),
    "negative version": frame(header(3, -1)),
    "client id longer than the frame": frame(struct.pack(">hhih", 3, 1, 1, 30000) + b"abc"),
    "client id of negative length": frame(struct.pack(">hhih", 3, 1, 1, -2) + b"abc"),
    "client id that is no text": frame(struct.pack(">hhih", 3, 1, 1, 3) + b"\xff\xfe\xfd" + struct.pack(">i", 0)),
    "count below null": frame(METADATA_1 + struct.pack(">i", -2)),
    "huge count": frame(METADATA_1 + struct.pack(">i", (1 << 31) - 1)),
    "count above what is there": frame(METADATA_1 + struct.pack(">i", 1000) + b"\0\x01a"),
    "huge compact count": frame(METADATA_12 + b"\xff\xff\xff\xff\x0f"),
    "endless varint": frame(METADATA_12 + b"\xff" * 20),
    "string longer than the frame": frame(METADATA_1 + struct.pack(">ih", 1, 30000) + b"abc"),
    "string that is no text": frame(METADATA_1 + struct.pack(">ih", 1, 3) + b"\xff\xfe\xfd"),
    "bytes left over": frame(METADATA_1 + struct.pack(">i", 0) + b"more"),
    "tags longer than the frame": frame(header(3, 12) + b"\x01\x05\xff\xff\x7f" + b"abc"),
    "huge count of tags": frame(header(3, 12) + b"\xff\xff\xff\xff\x0f"),
    "null where there is none": frame(header(19, 2) + struct.pack(">ih", 1, -1) + bytes(30)),
}
MAY_BE_ANSWERED = {"bytes left over", "count below null", "client id that is no text", "string that is no text"}


@pytest.mark.parametrize("case", CLOSED)
def test_a_malformed_frame_closes_its_connection_and_is_logged_once(victim: Victim, case: str) -> None:
    victim.new_log_lines()
    with victim.connect() as connection:
        connection.send_bytes(CLOSED[case])
        closed = connection.is_closed_by_peer()
    assert closed or case in MAY_BE_ANSWERED
    lines = victim.assert_unharmed()
    assert len(lines) == 1 if closed else len(lines) <= 1, lines


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "x" * 250, "../../etc", "new\nline", "nul\0", "ü", "x" * 30000])
def test_an_invalid_topic_name_is_an_error_and_no_file(victim: Victim, name: str) -> None:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    with victim.connect() as connection:
        (made,) = connection.call(CreateTopicsRequest(topics=[topic]), 7, CreateTopicsResponse).topics
        assert made.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
        (found,) = connection.call(asked, 12, MetadataResponse).topics
        assert found.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert len(victim.assert_unharmed()) <= 2
    assert not [path for path in victim.cluster.data_dir.iterdir() if "etc" in path.name or " " in path.name]


@pytest.mark.parametrize("partitions", [1_000_000, (1 << 31) - 1])
def test_a_topic_with_too_many_partitions_is_refused(victim: Victim, partitions: int) -> None:
    topic = CreatableTopic(name="too-many", num_partitions=partitions, replication_factor=1)
    with victim.connect() as connection:
        (made,) = connection.call(CreateTopicsRequest(topics=[topic]), 7, CreateTopicsResponse).topics
    assert made.error_code == ErrorCode.POLICY_VIOLATION
    assert made.error_message == (
        f"the request would take {partitions + 1} records; ask for fewer partitions at once, at most about 10000"
    )
    victim.assert_unharmed()


def test_announced_bytes_that_never_come_cost_no_memory(victim: Victim) -> None:
    before = victim.resident_bytes
    connections = [victim.connect() for _ in range(40)]
    try:
        for connection in connections:
            connection.send_bytes(struct.pack(">i", 19_000_000) + METADATA_1)
        victim.assert_unharmed()
        assert victim.resident_bytes - before < 60 * MEGABYTE
    finally:
        for connection in connections:
            connection.close()
    victim.assert_unharmed()


@pytest.mark.parametrize(("count", "is_served"), [(20_000, True), (200_000, False)])
def test_many_topics_in_one_request_cost_bounded_memory(victim: Victim, count: int, is_served: bool) -> None:
    before = victim.resident_bytes
    with victim.connect() as connection:
        connection.send_bytes(frame(header(3, 4) + struct.pack(">i", count) + b"\0\x01a" * count + b"\0"))
        if is_served:
            connection.receive_frame()
        else:
            assert connection.is_closed_by_peer()
    victim.assert_unharmed()
    assert victim.resident_bytes - before < 100 * MEGABYTE
