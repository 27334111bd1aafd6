"""The send queue: as few system calls as possible, and never MSG_MORE without more to follow."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quire.real.disk import RealDisk, RealFile
from quire.real.send_queue import SendQueue
from quire.seams import FileSlice

KB = 1024


class WatchedSocket(socket.socket):
    """A socket that records the flags of each sendmsg."""

    def sendmsg(self, buffers: Any, ancillary: Any = (), flags: int = 0, *rest: Any) -> int:
        self.flags = [*getattr(self, "flags", []), flags]
        return super().sendmsg(buffers, ancillary, flags, *rest)


@pytest.fixture
def ends() -> Iterator[tuple[WatchedSocket, socket.socket]]:
    near, far = socket.socketpair()
    watched = WatchedSocket(fileno=near.detach())
    watched.setblocking(False)
    with watched, far:
        yield watched, far


@pytest.mark.parametrize("empty_behind", [0, 1])
@pytest.mark.parametrize("count", [1, 255, 256, 257, 512, 513])
def test_the_last_call_promises_nothing_and_every_earlier_one_does(
    ends: tuple[WatchedSocket, socket.socket], count: int, empty_behind: int
) -> None:
    near, far = ends
    queue = SendQueue(near, memoryview(bytearray(256 * KB)))
    queue.send_at_once([b"%03d" % i for i in range(count)] + [b""] * empty_behind)
    assert queue.size == 0
    assert far.recv(10_000) == b"".join(b"%03d" % i for i in range(count))
    calls = -(-count // 256)
    assert near.flags == [socket.MSG_MORE] * (calls - 1) + [0]


def test_only_what_could_not_be_sent_and_may_change_is_copied(ends: tuple[WatchedSocket, socket.socket]) -> None:
    near, _ = ends
    queue = SendQueue(near, memoryview(bytearray(256 * KB)))
    fixed, view_of_fixed = b"x" * 4000 * KB, memoryview(b"y" * KB)
    changing = bytearray(b"z" * KB)
    queue.send_at_once([fixed, view_of_fixed, changing])
    rest, second, third = queue._parts
    assert isinstance(rest, memoryview)
    assert rest.obj is fixed
    assert second is view_of_fixed
    assert third == changing
    assert isinstance(third, bytes)
    assert queue.size == len(rest) + 2 * KB


def test_each_megabyte_of_a_large_slice_is_looked_at_once_however_small_the_pieces_are_that_the_socket_takes(
    ends: tuple[WatchedSocket, socket.socket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    near, far = ends
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 50 * KB)
    looked_at: list[tuple[int, int]] = []

    def is_cached(_: RealFile, size: int, position: int) -> bool:
        looked_at.append((position, size))
        return True

    monkeypatch.setattr(RealFile, "cached", is_cached)
    path = tmp_path / "slice"
    path.write_bytes(bytes(range(256)) * 10 * KB)
    file = RealDisk().open(str(path))
    queue = SendQueue(near, memoryview(bytearray(256 * KB)))
    queue.send_at_once([FileSlice(file, 0, 2560 * KB)])
    received = b""
    while queue.size:
        received += far.recv(64 * KB)
        queue.send()
    near.shutdown(socket.SHUT_WR)
    while piece := far.recv(KB * KB):
        received += piece
    file.close()
    assert received == path.read_bytes()
    assert looked_at == [(0, 1024 * KB), (1024 * KB, 1024 * KB), (2048 * KB, 512 * KB)]
