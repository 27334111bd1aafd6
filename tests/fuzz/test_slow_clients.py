"""Clients that stop in the middle, never read, or connect by the hundred block no other client."""

import contextlib
import socket

import pytest

from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.testing.wire_connection import request_frame
from tests.fuzz.victim import Victim
from tests.wire.batches import batch
from tests.wire.raw import fetch_request, produce, produce_request

MEGABYTE = 1 << 20
NOTHING = MetadataRequest(topics=[])


@pytest.fixture(scope="module")
def topic(victim: Victim) -> str:
    made = CreatableTopic(name="slow", num_partitions=1, replication_factor=1)
    with victim.connect() as connection:
        assert connection.call(CreateTopicsRequest(topics=[made]), 7, CreateTopicsResponse).topics[0].error_code == 0
        for _ in range(8):
            assert produce(connection, "slow", batch([b"x" * 900_000])).error_code == 0
    return "slow"


def send_until_refused(connection: socket.socket, data: bytes, limit: int) -> int:
    """Sends without reading until the node accepts no more; returns how many bytes it accepted."""
    connection.settimeout(0.5)
    taken = 0
    view = memoryview(data)
    with contextlib.suppress(TimeoutError, ConnectionError):
        while taken < limit:
            taken += connection.send(view[taken % len(data) :])
    return taken


def test_half_a_request_and_silence(victim: Victim) -> None:
    whole = request_frame(NOTHING, 12, 1)
    connections = [victim.connect() for _ in range(len(whole) - 1)]
    for size, connection in enumerate(connections, start=1):
        connection.send_bytes(whole[:size])
    victim.assert_unharmed()
    for size, connection in enumerate(connections, start=1):
        connection.send_bytes(whole[size:])
        connection.receive(MetadataResponse, 12, 1)
        connection.close()
    assert victim.assert_unharmed() == []


def test_a_client_that_asks_for_much_and_never_reads(victim: Victim, topic: str) -> None:
    before = victim.resident_bytes
    request = fetch_request(topic, partition_max_bytes=8 * MEGABYTE)
    frames = request_frame(request, 12, 1) * 200
    connections = [victim.connect() for _ in range(5)]
    try:
        for connection in connections:
            assert send_until_refused(connection.socket, frames, 50 * MEGABYTE) < 50 * MEGABYTE, "must push back"
            victim.assert_unharmed()
        assert victim.resident_bytes - before < 100 * MEGABYTE
    finally:
        for connection in connections:
            connection.close()
    victim.assert_unharmed()


def test_a_client_that_writes_much_and_never_reads(victim: Victim, topic: str) -> None:
    before = victim.resident_bytes
    request = request_frame(NOTHING, 12, 1) * 5000
    connection = victim.connect()
    try:
        send_until_refused(connection.socket, request, 100 * MEGABYTE)
        victim.assert_unharmed()
        assert victim.resident_bytes - before < 60 * MEGABYTE
    finally:
        connection.close()
    victim.assert_unharmed()


def test_a_crowd_that_waits_and_leaves(victim: Victim, topic: str) -> None:
    before = victim.resident_bytes
    request = fetch_request(topic, 8, max_wait_ms=60_000)
    for _ in range(3):
        crowd = [victim.connect() for _ in range(100)]
        for connection in crowd:
            connection.send(request, 12)
        victim.assert_unharmed()
        for connection in crowd:
            connection.close()
    victim.assert_unharmed()
    assert victim.resident_bytes - before < 40 * MEGABYTE


def test_a_client_that_hangs_up_in_the_middle_of_an_answer(victim: Victim, topic: str) -> None:
    for _ in range(20):
        with victim.connect() as connection:
            connection.send(fetch_request(topic, partition_max_bytes=8 * MEGABYTE), 12)
            connection.socket.recv(1000)
    victim.assert_unharmed()


def test_a_client_that_hangs_up_in_the_middle_of_a_large_request(victim: Victim, topic: str) -> None:
    whole = request_frame(produce_request(topic, batch([b"x" * 900_000])), 12, 1)
    for _ in range(20):
        with victim.connect() as connection:
            connection.send_bytes(whole[: len(whole) // 2])
    victim.assert_unharmed()
