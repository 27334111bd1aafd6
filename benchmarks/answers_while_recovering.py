"""`python -m benchmarks.answers_while_recovering`: whether a node answers while it recovers a large log after a kill.

A node is killed, one of its logs is replaced by 2 GB of batches that no run has ever closed, and the node is started
again. Meanwhile a client sends ApiVersions to the controller listener every two milliseconds. The event loop must
answer all of them; a loop that recovered the log itself would answer none before the node is ready.
"""

import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.recovery import write_log

LOG_BYTES = 2_000_000_000
BATCH_BYTES = 1_000
PORT = 19_092
ADDRESS = f"127.0.0.1:{PORT}"
QUIRE = str(Path(sys.executable).with_name("quire"))
EVERY_S = 0.002
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)


class Node:
    """`quire start` as a process; `ready` is set when it serves."""

    def __init__(self, data: Path) -> None:
        command = [QUIRE, "start", "--data", str(data), "--log-level", "warning", "--listen", ADDRESS]
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, "--set", "log.segment.bytes=2147483647"],
            stdout=subprocess.PIPE,
        )
        self.ready = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        if self.process.stdout.readline().startswith(b"ready"):
            self.ready.set()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def replace_log(folder: Path, log_bytes: int) -> None:
    for file in folder.iterdir():
        if file.suffix in (".index", ".timeindex"):
            file.unlink()
    write_log(folder, BATCH_BYTES, True, log_bytes)


def answers_until_ready(node: Node) -> list[float]:
    """How long each request took, in milliseconds."""
    took_ms: list[float] = []
    with connected(node) as connection:
        while not node.ready.is_set():
            sent = time.perf_counter()
            connection.sendall(API_VERSIONS)
            receive(connection, struct.unpack(">i", receive(connection, 4))[0])
            took_ms.append((time.perf_counter() - sent) * 1000)
            time.sleep(EVERY_S)
    return took_ms


def connected(node: Node) -> socket.socket:
    while True:
        try:
            return socket.create_connection(("127.0.0.1", PORT + 1), 10)
        except ConnectionRefusedError:
            assert node.process.poll() is None, "the node did not start"


def receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        received += connection.recv(size - len(received))
    return received


def main(log_bytes: int = LOG_BYTES) -> None:
    with tempfile.TemporaryDirectory(prefix="quire-recovering-") as name:
        data = Path(name) / "data"
        first = Node(data)
        assert first.ready.wait(60), "the node did not start"
        subprocess.run([QUIRE, "topics", "create", "large", "-b", ADDRESS], check=True, stdout=subprocess.DEVNULL)
        first.kill()
        replace_log(data / "large-0", log_bytes)
        second = Node(data)
        try:
            took_ms = sorted(answers_until_ready(second))
            start_s = time.perf_counter() - second.started
        finally:
            second.kill()
        print(
            f"ready after {start_s:.1f} s with {log_bytes / 1e9:.1f} GB to recover; meanwhile ApiVersions was answered "
            f"{len(took_ms)} times, in {took_ms[len(took_ms) // 2]:.2f} ms (median) and {took_ms[-1]:.1f} ms (longest)"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
