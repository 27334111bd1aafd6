"""A broker of three that is killed with -9 is fenced because its process ended, not because it is silent."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quire.node.quorum_progress import HIGH_WATERMARK
from quire.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from quire.protocol.messages.describe_quorum import DescribeQuorumResponse
from quire.testing import WireConnection

SESSION_TIMEOUT_MS = 300_000
"""Long enough that a broker is fenced in this test only if its end was detected."""
WAIT_S = 60.0
STOP_S = 60.0


class ThreeNodes:
    def __init__(self, folder: Path) -> None:
        self._log = folder / "log"
        arguments = ["start", "--nodes", "3", "--no-restart", "--ephemeral", "--data", str(folder / "data")]
        settings = ["--set", f"broker.session.timeout.ms={SESSION_TIMEOUT_MS}"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "quire.testing.launch", str(os.getpid()), *arguments, *settings],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("ready "), self.log()
        self.addresses = dict(enumerate(line.split()[1].split(","), 1))

    def log(self) -> str:
        return self._log.read_text()

    def kill(self, node_id: int) -> None:
        (pid,) = re.findall(rf"node-{node_id} started pid=(\d+)", self.log())
        os.kill(int(pid), signal.SIGKILL)

    def controller_id(self) -> int:
        with WireConnection(self.addresses[1]) as connection:
            response = connection.call(HIGH_WATERMARK, 2, DescribeQuorumResponse)
        return response.topics[0].partitions[0].leader_id

    def fenced(self, asked: int) -> list[int]:
        with WireConnection(self.addresses[asked]) as connection:
            request = DescribeClusterRequest(include_fenced_brokers=True)
            answer = connection.call(request, 2, DescribeClusterResponse)
        return [each.broker_id for each in answer.brokers if each.is_fenced]

    def wait_until_fenced(self, node_id: int, asked: int) -> None:
        deadline = time.monotonic() + WAIT_S
        while self.fenced(asked) != [node_id]:
            assert time.monotonic() < deadline, self.log()

    def wait_until_logged(self, text: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while text not in self.log():
            assert time.monotonic() < deadline, self.log()

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        finally:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[ThreeNodes]:
    started = ThreeNodes(tmp_path)
    try:
        yield started
    finally:
        started.stop()


@pytest.mark.parametrize("is_controller", [False, True])
def test_a_broker_that_is_killed_is_fenced_without_waiting_for_its_session(
    nodes: ThreeNodes, is_controller: bool
) -> None:
    controller = nodes.controller_id()
    others = [id_ for id_ in nodes.addresses if id_ != controller]
    gone = controller if is_controller else others[0]
    nodes.kill(gone)
    nodes.wait_until_fenced(gone, asked=others[1])
    # The supervisor passes on the lines of its nodes, so a line may come later than what it is about.
    nodes.wait_until_logged(f"broker fenced broker={gone} reason=its process is gone")
