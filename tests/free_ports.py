"""Ports for programs that get their port as an option and open it later.

They are below the range that the system uses for outgoing connections. A test run opens thousands of these, and one
could take the port before the program listens. Other test processes on this machine do not choose them either, not even
while the program is down between two starts: each process has a block of ports, and listens on the first one of it.
"""

import functools
import itertools
import random
import socket
from collections.abc import Iterator

BELOW_OUTGOING = range(15_000, 32_000)
BLOCK = 500


def free_ports(count: int) -> list[int]:
    return list(itertools.islice(filter(_is_free, _in_turn()), count))


def free_cluster_port(nodes: int) -> int:
    """The first port of a local cluster: node i listens ten ports above the one before, its controller one above."""
    while True:
        first = free_port()
        ports = [first + 10 * node + above for node in range(nodes) for above in (0, 1)]
        if ports[-1] in _block() and all(map(_is_free, ports)):
            return first


def free_port() -> int:
    return free_ports(1)[0]


@functools.cache
def _in_turn() -> Iterator[int]:
    """The ports of this process, again and again: one that was used lately may still be in use."""
    return itertools.cycle(_block())


@functools.cache
def _block() -> range:
    starts = list(BELOW_OUTGOING[::BLOCK])
    random.SystemRandom().shuffle(starts)
    first = next(filter(_hold, starts), None)
    assert first is not None, "every block of ports is taken"
    return range(first + 1, first + BLOCK)


_held: list[socket.socket] = []


def _hold(port: int) -> bool:
    """Listens on a port, if it is free, until this process ends."""
    try:
        _held.append(socket.create_server(("127.0.0.1", port)))
    except OSError:
        return False
    return True


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
