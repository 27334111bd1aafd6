"""Transports on real sockets: order, back-pressure, deleted files, cold reads, and ends that are reported once."""

import os
import random
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quire.seams import FileSlice, Part
from tests.real.real_world import RealWorld
from tests.storage.manual_jobs import ManualJobs

MB = 1024 * 1024


@pytest.fixture(params=["uvloop", "asyncio"])
def world(request: pytest.FixtureRequest) -> Iterator[RealWorld]:
    made = RealWorld(request.param)
    yield made
    made.close()


@pytest.fixture(params=["uvloop", "asyncio"])
def cold_world(request: pytest.FixtureRequest) -> Iterator[RealWorld]:
    made = RealWorld(request.param, jobs=ManualJobs())
    yield made
    made.close()


def content(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def test_bytes_are_sent_in_both_directions(world: RealWorld) -> None:
    client, server = world.client()
    client.send(b"question")
    world.until(lambda: server.data == b"question")
    server.transport.write([b"an", bytearray(b"sw"), memoryview(b"er")])
    assert world.read(client, 6) == b"answer"
    host, port = client.getsockname()
    assert server.transport.peer == f"{host}:{port}"


def test_more_than_the_room_for_it_is_received_piece_by_piece(world: RealWorld) -> None:
    client, server = world.client()
    sent = content(50_000)
    client.sendall(sent)
    world.until(lambda: len(server.data) == 50_000)
    assert server.data == sent


def test_buffers_and_slices_of_all_sizes_keep_their_order(world: RealWorld, tmp_path: Path) -> None:
    client, server = world.client(receive_buffer=65536)
    stored = content(3 * MB)
    file = world.file(f"{tmp_path}/log", stored)
    chance = random.Random(7)
    parts: list[Part] = []
    expected = bytearray()
    for _ in range(400):
        size = chance.choice([0, 1, 100, 5000, 127 * 1024, 128 * 1024, 200_000, MB])
        at = chance.randrange(0, len(stored) - size)
        same: list[Part] = [
            FileSlice(file, at, size),
            stored[at : at + size],
            bytearray(stored[at : at + size]),
            memoryview(stored)[at : at + size],
        ]
        parts.append(chance.choice(same))
        expected += stored[at : at + size]
    for begin in range(0, 400, 40):
        server.transport.write(parts[begin : begin + 40])
    assert server.transport.queued_bytes > 0
    assert world.read(client, len(expected)) == expected
    world.until(lambda: server.drains == 1)


def test_more_parts_than_one_system_call_takes(world: RealWorld) -> None:
    client, server = world.client()
    server.transport.write([b"%04d" % i for i in range(3000)])
    assert world.read(client, 12_000) == b"".join(b"%04d" % i for i in range(3000))


def test_a_buffer_may_be_reused_as_soon_as_it_was_written(world: RealWorld) -> None:
    client, server = world.client(receive_buffer=4096)
    one, two = bytearray(b"a" * 8 * MB), bytearray(b"b" * MB)
    server.transport.write([one])
    server.transport.write([memoryview(two)])
    assert server.transport.queued_bytes > MB
    one[:], two[:] = b"x" * len(one), b"x" * len(two)
    assert world.read(client, 9 * MB) == b"a" * 8 * MB + b"b" * MB


def test_unsent_bytes_are_counted_and_drained_is_called_when_they_are_sent(world: RealWorld) -> None:
    client, server = world.client(receive_buffer=4096)
    server.transport.write([b"x" * 8 * MB])
    queued = server.transport.queued_bytes
    assert 0 < queued < 8 * MB
    server.transport.write([b"y" * 1000])
    assert server.transport.queued_bytes == queued + 1000
    for _ in range(5):
        world.turn()
    assert server.drains == 0
    assert world.read(client, 8 * MB + 1000) == b"x" * 8 * MB + b"y" * 1000
    world.until(lambda: server.drains == 1)
    server.transport.write([b"small"])
    assert world.read(client, 5) == b"small"
    world.turn()
    assert server.drains == 1


def test_while_paused_nothing_is_received_and_after_resume_everything(world: RealWorld) -> None:
    client, server = world.client()
    server.transport.pause()
    client.send(b"early")
    for _ in range(5):
        world.turn()
    assert server.data == b""
    server.transport.resume()
    world.until(lambda: server.data == b"early")
    server.transport.pause()
    server.transport.resume()
    client.send(b", later")
    world.until(lambda: server.data == b"early, later")


def test_a_disconnect_is_detected_while_paused(world: RealWorld) -> None:
    client, server = world.client()
    server.transport.pause()
    client.close()
    world.until(lambda: server.closed_reasons == ["closed by the other side"])


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


@pytest.mark.parametrize("leave", [reset, socket.socket.close])
@pytest.mark.parametrize("size", [10, 4096, 10_000])
def test_an_end_that_arrives_together_with_bytes_is_detected(
    world: RealWorld, leave: Callable[[socket.socket], None], size: int
) -> None:
    client, server = world.client()
    client.send(b"x" * size)
    leave(client)
    world.until(lambda: len(server.closed_reasons) == 1)
    assert server.data == b"x" * size
    assert world.network.connections == 0


@pytest.mark.parametrize("leave", [reset, socket.socket.close])
def test_an_end_behind_unread_bytes_is_detected_while_paused(
    world: RealWorld, leave: Callable[[socket.socket], None]
) -> None:
    client, server = world.client()
    told: list[str] = []
    server.transport.pause(lambda: told.append("left"))
    client.send(b"last words" * 1000)
    world.turn()
    leave(client)
    world.until(lambda: told == ["left"])
    assert server.data == b""
    assert server.closed_reasons == []
    server.transport.resume()
    world.until(lambda: len(server.closed_reasons) == 1)
    assert server.data == b"last words" * 1000
    assert told == ["left"]


@pytest.mark.parametrize("leave", [reset, socket.socket.close])
def test_a_side_that_pauses_after_the_other_has_closed_learns_it(
    world: RealWorld, leave: Callable[[socket.socket], None]
) -> None:
    client, server = world.client()
    told: list[str] = []
    client.send(b"x" * 10_000)
    leave(client)
    server.when_received = lambda: server.transport.pause(lambda: told.append("left"))
    world.until(lambda: told == ["left"])
    assert len(server.data) < 10_000
    server.when_received = lambda: None
    server.transport.resume()
    world.until(lambda: len(server.closed_reasons) == 1)
    assert len(server.data) == 10_000


def test_a_reset_ends_a_connection_that_is_closing(cold_world: RealWorld, tmp_path: Path) -> None:
    world = cold_world
    client, server = world.client()
    file = world.cold(f"{tmp_path}/log", content(1000))
    server.transport.write([FileSlice(file, 0, 1000)])
    server.transport.close()
    reset(client)
    world.until(lambda: len(server.closed_reasons) == 1)


def test_thousands_of_bytes_and_ends_at_once_leave_nothing_behind(world: RealWorld) -> None:
    pairs = [world.client() for _ in range(200)]
    for i, (client, _) in enumerate(pairs):
        client.send(b"x" * 10)
        (reset if i % 2 else socket.socket.close)(client)
    world.until(lambda: all(len(server.closed_reasons) == 1 for _, server in pairs))
    assert all(server.data == b"x" * 10 for _, server in pairs)
    assert world.network.connections == 0


def test_closing_sends_what_is_queued_first(world: RealWorld) -> None:
    client, server = world.client(receive_buffer=4096)
    server.transport.write([b"x" * 8 * MB])
    server.transport.close()
    server.transport.write([b"too late"])
    world.turn()
    assert server.closed_reasons == []
    assert world.read(client, 100 * MB) == b"x" * 8 * MB
    world.until(lambda: server.closed_reasons == ["closed by this side"])
    server.transport.abort()
    server.transport.close()
    world.turn()
    assert len(server.closed_reasons) == 1
    assert world.network.connections == 0


def test_after_close_nothing_is_received(world: RealWorld) -> None:
    client, server = world.client(receive_buffer=4096)
    server.transport.write([b"x" * 8 * MB])
    server.transport.close()
    client.send(b"ignored")
    assert len(world.read(client, 4 * MB)) == 4 * MB
    assert server.data == b""


def test_aborting_drops_what_is_queued_and_is_reported_later_once(world: RealWorld) -> None:
    client, server = world.client(receive_buffer=4096)
    server.transport.write([b"x" * 8 * MB])
    server.transport.abort()
    assert server.closed_reasons == []
    assert server.transport.queued_bytes == 0
    world.until(lambda: server.closed_reasons == ["aborted by this side"])
    assert len(world.read(client, 8 * MB)) < 8 * MB


def test_a_client_that_resets_is_reported_once_even_if_more_is_written_to_it(world: RealWorld) -> None:
    client, server = world.client()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    server.transport.write([b"x" * 100])
    server.transport.write([b"y" * 100])
    world.until(lambda: len(server.closed_reasons) == 1)
    server.transport.write([b"z"])
    world.turn()
    assert len(server.closed_reasons) == 1


def test_a_receiver_that_fails_loses_its_connection_only(world: RealWorld, caplog: pytest.LogCaptureFixture) -> None:
    client, server = world.client()
    other, healthy = world.client()
    server.fails = True
    client.send(b"boom")
    world.until(lambda: server.closed_reasons == ["its owner failed"])
    other.send(b"fine")
    world.until(lambda: healthy.data == b"fine")
    assert len(caplog.records) == 1


def test_a_file_renamed_removed_and_closed_while_it_is_being_sent_arrives_whole(
    world: RealWorld, tmp_path: Path
) -> None:
    client, server = world.client(receive_buffer=4096)
    stored = content(12 * MB)
    file = world.file(f"{tmp_path}/log", stored)
    server.transport.write(
        [b"head", FileSlice(file, 0, 12 * MB - 5000), FileSlice(file, 12 * MB - 5000, 5000), b"tail"]
    )
    assert server.transport.queued_bytes > MB
    world.disk.rename(f"{tmp_path}/log", f"{tmp_path}/log.deleted")
    world.disk.remove(f"{tmp_path}/log.deleted")
    file.close()
    assert world.read(client, 12 * MB + 8) == b"head" + stored + b"tail"
    world.until(lambda: server.drains == 1)
    assert world.disk.descriptors == 0


def test_a_connection_that_ends_releases_the_files_it_was_sending(world: RealWorld, tmp_path: Path) -> None:
    client, server = world.client(receive_buffer=4096)
    file = world.file(f"{tmp_path}/log", content(12 * MB))
    server.transport.write([FileSlice(file, 0, 12 * MB), FileSlice(file, 0, 1000)])
    file.close()
    assert world.disk.descriptors == 1
    client.close()
    world.until(lambda: len(server.closed_reasons) == 1)
    assert world.disk.descriptors == 0


@pytest.mark.parametrize("size", [1000, 300_000])
def test_a_file_that_ends_too_early_ends_the_connection(world: RealWorld, tmp_path: Path, size: int) -> None:
    client, server = world.client()
    file = world.file(f"{tmp_path}/log", b"x" * (size - 1))
    server.transport.write([FileSlice(file, 0, size)])
    world.until(lambda: len(server.closed_reasons) == 1)
    assert "ends before" in server.closed_reasons[0]
    assert len(world.read(client, size)) < size


@pytest.mark.parametrize("size", [1000, 3 * MB])
def test_a_cold_slice_is_read_by_a_job_while_others_are_served(
    cold_world: RealWorld, tmp_path: Path, size: int
) -> None:
    world = cold_world
    jobs = world.jobs
    assert isinstance(jobs, ManualJobs)
    client, server = world.client()
    other, neighbour = world.client()
    stored = content(size)
    file = world.cold(f"{tmp_path}/log", stored)
    server.transport.write([b"head", FileSlice(file, 0, size), b"tail"])
    server.transport.write([b"next"])
    assert len(jobs) == 1
    neighbour.transport.write([b"served"])
    assert world.read(other, 6) == b"served"
    assert world.read(client, 4) == b"head"
    for _ in range(3):
        world.turn()
    assert server.transport.queued_bytes == size + 8
    received = bytearray()
    while jobs:
        jobs.run_next()
        received += world.read(client, min(MB, size - len(received)))
        for _ in range(3):
            world.turn()
    assert received + world.read(client, 8) == stored + b"tailnext"
    world.until(lambda: server.drains == 1)


def test_a_cold_slice_is_not_needed_any_more_when_the_client_has_left(cold_world: RealWorld, tmp_path: Path) -> None:
    world = cold_world
    jobs = world.jobs
    assert isinstance(jobs, ManualJobs)
    client, server = world.client()
    file = world.cold(f"{tmp_path}/log", content(1000))
    server.transport.write([FileSlice(file, 0, 1000)])
    client.close()
    world.until(lambda: len(server.closed_reasons) == 1)
    file.close()
    jobs.run_next()
    world.turn()
    assert len(server.closed_reasons) == 1
    assert world.disk.descriptors == 0


def test_closing_waits_for_a_cold_slice(cold_world: RealWorld, tmp_path: Path) -> None:
    world = cold_world
    jobs = world.jobs
    assert isinstance(jobs, ManualJobs)
    client, server = world.client()
    file = world.cold(f"{tmp_path}/log", content(1000))
    server.transport.write([FileSlice(file, 0, 1000)])
    server.transport.close()
    world.turn()
    assert server.closed_reasons == []
    jobs.run_next()
    assert world.read(client, 2000) == content(1000)
    world.until(lambda: server.closed_reasons == ["closed by this side"])


def test_a_read_that_fails_in_the_job_ends_the_connection_only(
    cold_world: RealWorld, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = cold_world
    jobs = world.jobs
    assert isinstance(jobs, ManualJobs)
    client, server = world.client()
    other, healthy = world.client()
    file = world.cold(f"{tmp_path}/log", content(100))
    server.transport.write([FileSlice(file, 50, 100)])
    jobs.run_next()
    world.until(lambda: len(server.closed_reasons) == 1)
    other.send(b"fine")
    world.until(lambda: healthy.data == b"fine")
    assert len(caplog.records) == 1
    assert world.read(client, 10) == b""


def test_a_really_cold_file_arrives_whole(world: RealWorld, tmp_path: Path) -> None:
    client, server = world.client()
    stored = content(5 * MB)
    file = world.file(f"{tmp_path}/log", stored)
    file.sync()
    number = file.acquire()
    os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
    file.release()
    server.transport.write([b"head", FileSlice(file, 0, 4 * MB), FileSlice(file, 4 * MB, 50_000)])
    assert world.read(client, 4 + 4 * MB + 50_000) == b"head" + stored[: 4 * MB + 50_000]
