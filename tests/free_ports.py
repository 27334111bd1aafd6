"""Ports for programs that get their port as an option and open it later.

They are below the range that the system uses for outgoing connections. A test run opens thousands of these, and one
could take the port before the program listens.
"""

import random
import socket

BELOW_OUTGOING = range(15_000, 32_000)


def free_ports(count: int) -> list[int]:
    found: list[int] = []
    with_chance = random.SystemRandom()
    while len(found) < count:
        port = with_chance.choice(BELOW_OUTGOING)
        if port not in found and _is_free(port):
            found.append(port)
    return found


def free_cluster_port(nodes: int) -> int:
    """The first port of a local cluster: node i listens ten ports above the one before, its controller one above."""
    while True:
        first = free_port()
        if all(_is_free(first + 10 * node + above) for node in range(nodes) for above in (0, 1)):
            return first


def free_port() -> int:
    return free_ports(1)[0]


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
