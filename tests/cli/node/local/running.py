"""`quire start --nodes` as a process, with its log and the processes of its nodes."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.command import PATIENCE_S, QUIRE, environment, quire

LOG = "log.txt"
STARTED = re.compile(r"quire\.supervisor: (node-\d+) started pid=(\d+)")


class RunningCluster:
    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process = process
        self.folder = folder
        self._log = folder / LOG
        assert process.stdout is not None
        self.first_line = process.stdout.readline().decode()
        self.servers = self.first_line.removeprefix("ready ").strip()

    def log(self) -> str:
        return self._log.read_text()

    def pids(self) -> dict[str, int]:
        """The last process of each node."""
        return {name: int(pid) for name, pid in STARTED.findall(self.log())}

    def brokers(self) -> list[int]:
        done = quire("cluster", "--json", "--timeout", "5", servers=self.servers)
        return [node["id"] for node in json.loads(done.stdout)["nodes"]] if done.returncode == 0 else []

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


@contextmanager
def cluster(tmp_path: Path, *arguments: str) -> Iterator[RunningCluster]:
    with (tmp_path / LOG).open("wb") as err:
        process = subprocess.Popen([*QUIRE, "start", *arguments], stdout=subprocess.PIPE, stderr=err, env=environment())
    running = None
    try:
        running = RunningCluster(process, tmp_path)
        yield running
    finally:
        process.kill()
        process.communicate()
        if running is not None:
            for pid in running.pids().values():
                until(lambda pid=pid: not is_running(pid))  # type: ignore[misc]


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
