"""`python -m benchmarks.floor`: the time that the system calls of any broker take.

A process that checks nothing and knows no protocol receives a gigabyte through a socket and writes it to a file. Then
it answers small requests and writes each of them first. No broker that keeps its log in files can be faster.
"""

import multiprocessing
import resource
import select
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.machine import warm_memory, write_back
from quire.real.disk import RealDisk

ROUNDS = 5
REQUEST_BYTES = 1 << 20
VOLUME_BYTES = 1 << 30
SMALL_REQUEST_BYTES = 250
SMALL_ANSWER_BYTES = 60
ROUND_TRIPS = 10_000
PAUSE_S = 100e-6
"""What a client with threads takes between an answer and its next request, in which a broker falls asleep."""


def send_volume(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        request = bytes(REQUEST_BYTES)
        for _ in range(VOLUME_BYTES // REQUEST_BYTES):
            connection.sendall(request)
        connection.recv(1)


def send_one_by_one(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(ROUND_TRIPS):
            connection.sendall(bytes(SMALL_REQUEST_BYTES))
            connection.recv(SMALL_ANSWER_BYTES, socket.MSG_WAITALL)
            time.sleep(PAUSE_S)


def serve(client: Callable[[int], None], work: Callable[[socket.socket], None]) -> float:
    """Seconds of processor time that `work` took on a connection of a process that runs `client`."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        process = multiprocessing.get_context("spawn").Process(target=client, args=(listening.getsockname()[1],))
        process.start()
        connection, _ = listening.accept()
        with connection:
            before = resource.getrusage(resource.RUSAGE_SELF)
            work(connection)
            after = resource.getrusage(resource.RUSAGE_SELF)
        process.join()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def volume_seconds_per_gigabyte(folder: Path) -> float:
    file = RealDisk().open(str(folder / "log"), create=True)

    def write_all(connection: socket.socket) -> None:
        request = memoryview(bytearray(REQUEST_BYTES))
        for position in range(0, VOLUME_BYTES, REQUEST_BYTES):
            connection.recv_into(request, REQUEST_BYTES, socket.MSG_WAITALL)
            file.pwritev([request], position)

    write_back()
    warm_memory(folder)
    seconds = serve(send_volume, write_all)
    file.truncate(0)
    file.close()
    return seconds / (VOLUME_BYTES / 1e9)


def microseconds_per_small_request(folder: Path) -> float:
    file = RealDisk().open(str(folder / "log"), create=True)

    def answer_all(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        waiting = select.epoll()
        waiting.register(connection, select.EPOLLIN)
        request = memoryview(bytearray(SMALL_REQUEST_BYTES))
        answer = bytes(SMALL_ANSWER_BYTES)
        for number in range(ROUND_TRIPS):
            waiting.poll()
            connection.recv_into(request)
            file.pwritev([request], number * SMALL_REQUEST_BYTES)
            connection.send(answer)
        waiting.close()

    seconds = serve(send_one_by_one, answer_all)
    file.close()
    return seconds * 1e6 / ROUND_TRIPS


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="quire-floor-") as name:
        volumes = [volume_seconds_per_gigabyte(Path(name)) for _ in range(ROUNDS)]
        requests = [microseconds_per_small_request(Path(name)) for _ in range(ROUNDS)]
    print("| what | lowest | median |\n|---|---|---|")
    print(f"| receive and write 1 GB in pieces of 1 MB: CPU-s | {min(volumes):.3f} | {median(volumes):.3f} |")
    print(f"| receive, write, answer 250 B, after a pause: CPU us | {min(requests):.1f} | {median(requests):.1f} |")


if __name__ == "__main__":
    main()
