"""`python -m benchmarks.floor`: the time that the system calls of any broker take.

A process that checks nothing and knows no protocol receives a gigabyte through a socket and writes it to a file. Then
it answers small requests and writes each of them first. No broker that keeps its log in files can be faster.

Then the same with three replicas: a leader that also sends what it wrote from its file to two followers, which receive
it and write it to theirs. A small request is answered when both have confirmed that they have it.
"""

import multiprocessing
import os
import resource
import select
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from benchmarks.machine import warm_memory, write_back
from quire.real.disk import RealDisk

ROUNDS = 5
REQUEST_BYTES = 1 << 20
VOLUME_BYTES = 1 << 30
SMALL_REQUEST_BYTES = 250
SMALL_ANSWER_BYTES = 60
SMALL_FETCH_BYTES = 100
ROUND_TRIPS = 10_000
FOLLOWERS = 2
REPLICATED_BYTES = VOLUME_BYTES // 2
"""Three files of it are less than `warm_memory` warms."""
SEND_BUFFER_BYTES = 102_400
"""Kafka's default. With the larger buffers that the system chooses, copying to a socket costs more."""
PAUSE_S = 100e-6
"""The pause of a client with threads between an answer and its next request, in which a broker falls asleep."""


def own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def send_volume(port: int, size_bytes: int = VOLUME_BYTES) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        request = bytes(REQUEST_BYTES)
        for _ in range(size_bytes // REQUEST_BYTES):
            connection.sendall(request)
        connection.recv(1)


def send_one_by_one(port: int, result: Connection | None = None) -> None:
    """Sends the median round trip, in seconds, to `result`."""
    taken = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(ROUND_TRIPS):
            started = time.perf_counter()
            connection.sendall(bytes(SMALL_REQUEST_BYTES))
            connection.recv(SMALL_ANSWER_BYTES, socket.MSG_WAITALL)
            taken.append(time.perf_counter() - started)
            time.sleep(PAUSE_S)
    if result is not None:
        result.send(median(taken))


def serve(client: Callable[[int], None], work: Callable[[socket.socket], None]) -> float:
    """Seconds of processor time that `work` took on a connection of a process that runs `client`."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        process = multiprocessing.get_context("spawn").Process(target=client, args=(listening.getsockname()[1],))
        process.start()
        connection, _ = listening.accept()
        with connection:
            before_s = own_cpu_s()
            work(connection)
            after_s = own_cpu_s()
        process.join()
    return after_s - before_s


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


# --- Three replicas


def send_replicated_volume(port: int) -> None:
    send_volume(port, REPLICATED_BYTES)


def follow_volume(port: int, path: str, result: Connection) -> None:
    """Sends to `result` the processor time that it took to copy what the leader sends."""
    file = RealDisk().open(path, create=True)
    with socket.create_connection(("127.0.0.1", port)) as leader:
        before_s = own_cpu_s()
        data = memoryview(bytearray(REQUEST_BYTES))
        for position in range(0, REPLICATED_BYTES, REQUEST_BYTES):
            leader.recv_into(data, REQUEST_BYTES, socket.MSG_WAITALL)
            file.pwritev([data], position)
        leader.send(b"x")
        result.send(own_cpu_s() - before_s)
    file.truncate(0)
    file.close()


def follow_one_by_one(port: int, path: str, result: Connection) -> None:
    file = RealDisk().open(path, create=True)
    with socket.create_connection(("127.0.0.1", port)) as leader:
        leader.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        before_s = own_cpu_s()
        waiting = select.epoll()
        waiting.register(leader, select.EPOLLIN)
        data = memoryview(bytearray(SMALL_REQUEST_BYTES))
        fetch = bytes(SMALL_FETCH_BYTES)
        for number in range(ROUND_TRIPS):
            waiting.poll()
            leader.recv_into(data)
            file.pwritev([data], number * SMALL_REQUEST_BYTES)
            leader.send(fetch)
        waiting.close()
        result.send(own_cpu_s() - before_s)
    file.close()


@dataclass(slots=True)
class Replicated:
    leader_s: float
    followers_s: float
    round_trip_s: float
    """The median that the client measured; 0 if it did not measure."""

    @property
    def total_s(self) -> float:
        return self.leader_s + self.followers_s


def replicate(
    folder: Path,
    follow: Callable[[int, str, Connection], None],
    client: Callable[..., None],
    work: Callable[[socket.socket, list[socket.socket]], None],
    *,
    client_measures: bool,
) -> Replicated:
    """Processor time that `work` took, with two processes that run `follow`, and a process that runs `client`."""
    context = multiprocessing.get_context("spawn")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        # Connections inherit it from their listener.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        port = listening.getsockname()[1]
        connections: list[socket.socket] = []
        processes = []
        results: list[Connection] = []
        for number in range(FOLLOWERS):
            receiving, sending = context.Pipe(duplex=False)
            processes.append(context.Process(target=follow, args=(port, str(folder / f"copy-{number}"), sending)))
            results.append(receiving)
        receiving, sending = context.Pipe(duplex=False)
        processes.append(context.Process(target=client, args=(port, sending) if client_measures else (port,)))
        for process in processes:
            process.start()
            # One after the other, so that the owner of each connection is known.
            connections.append(listening.accept()[0])
        *followers, sender = connections
        before_s = own_cpu_s()
        work(sender, followers)
        leader_s = own_cpu_s() - before_s
        followers_s = sum(result.recv() for result in results)
        for connection in connections:
            connection.close()
        round_trip_s = receiving.recv() if client_measures else 0.0
        for process in processes:
            process.join()
    return Replicated(leader_s, followers_s, round_trip_s)


def replicated_volume(folder: Path) -> Replicated:
    """The processor time for the whole volume; divide by its gigabytes."""
    with (folder / "log").open("w+b", buffering=0) as file:

        def write_and_send_all(sender: socket.socket, followers: list[socket.socket]) -> None:
            request = memoryview(bytearray(REQUEST_BYTES))
            for position in range(0, REPLICATED_BYTES, REQUEST_BYTES):
                sender.recv_into(request, REQUEST_BYTES, socket.MSG_WAITALL)
                os.pwrite(file.fileno(), request, position)
                for follower in followers:
                    sent = 0
                    while sent < REQUEST_BYTES:
                        sent += os.sendfile(follower.fileno(), file.fileno(), position + sent, REQUEST_BYTES - sent)
            for follower in followers:
                follower.recv(1)

        write_back()
        warm_memory(folder)
        return replicate(folder, follow_volume, send_replicated_volume, write_and_send_all, client_measures=False)


def replicated_small_requests(folder: Path) -> Replicated:
    """The processor time for all round trips."""
    file = RealDisk().open(str(folder / "log"), create=True)

    def answer_all(sender: socket.socket, followers: list[socket.socket]) -> None:
        waiting = select.epoll()
        for connection in (sender, *followers):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            waiting.register(connection, select.EPOLLIN)
        by_number = {follower.fileno(): follower for follower in followers}
        request = memoryview(bytearray(SMALL_REQUEST_BYTES))
        answer = bytes(SMALL_ANSWER_BYTES)
        fetch = bytearray(SMALL_FETCH_BYTES)
        answered = missing = 0
        while answered < ROUND_TRIPS:
            for number, _ in waiting.poll():
                if number in by_number:
                    by_number[number].recv_into(fetch)
                    missing -= 1
                    if not missing:
                        sender.send(answer)
                        answered += 1
                else:
                    sender.recv_into(request)
                    file.pwritev([request], answered * SMALL_REQUEST_BYTES)
                    for follower in followers:
                        follower.send(request)
                    missing = FOLLOWERS
        waiting.close()

    done = replicate(folder, follow_one_by_one, send_one_by_one, answer_all, client_measures=True)
    file.close()
    return done


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="quire-floor-") as name:
        volumes = [volume_seconds_per_gigabyte(Path(name)) for _ in range(ROUNDS)]
        requests = [microseconds_per_small_request(Path(name)) for _ in range(ROUNDS)]
        copied = [replicated_volume(Path(name)) for _ in range(ROUNDS)]
        small = [replicated_small_requests(Path(name)) for _ in range(ROUNDS)]
    gigabytes = REPLICATED_BYTES / 1e9
    rows: dict[str, list[float]] = {
        "receive and write 1 GB in pieces of 1 MB: CPU-s": volumes,
        "receive, write, answer 250 B, after a pause: CPU us": requests,
        "three replicas, 1 GB in pieces of 1 MB: CPU-s of all": [each.total_s / gigabytes for each in copied],
        "three replicas, 1 GB in pieces of 1 MB: CPU-s of the leader": [each.leader_s / gigabytes for each in copied],
        "three replicas, 250 B, after a pause: CPU us of all": [each.total_s * 1e6 / ROUND_TRIPS for each in small],
        "three replicas, 250 B, after a pause: CPU us of the leader": [
            each.leader_s * 1e6 / ROUND_TRIPS for each in small
        ],
        "three replicas, 250 B, after a pause: us until the answer (p50)": [each.round_trip_s * 1e6 for each in small],
    }
    print("| what | lowest | median |\n|---|---|---|")
    for what, values in rows.items():
        print(f"| {what} | {min(values):.3g} | {median(values):.3g} |")


if __name__ == "__main__":
    main()
