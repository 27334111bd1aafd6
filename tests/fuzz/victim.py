"""A node under attack, and the checks that it is unharmed.

A client that connected before the attack must get an answer after every input, from the same process, within bounded
memory. The log must have no traceback, and no line whose length a client controls.
"""

import contextlib
import os
import time
from pathlib import Path

from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.testing import Cluster, WireConnection
from quire.throttled_log import LEFT_OUT

TOPICS = ["t", "fuzz"]
"""Existing topics and groups, so that a saved input finds the same state again."""
PATIENCE_S = 60.0
LOG_LINE_LIMIT = 1000
_NOTHING = MetadataRequest(topics=[])
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Victim:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.address = cluster.bootstrap_servers
        (self.pid,) = cluster.pids.values()
        self.bystander = WireConnection(self.address, client_id="bystander", timeout_s=PATIENCE_S)
        topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in TOPICS]
        made = self.bystander.call(CreateTopicsRequest(topics=topics), 7, CreateTopicsResponse).topics
        assert [topic.error_code for topic in made] == [0] * len(TOPICS)
        self._log_seen = cluster.log_size

    def connect(self) -> WireConnection:
        return WireConnection(self.address, client_id="attacker", timeout_s=PATIENCE_S)

    def throw(self, data: bytes) -> None:
        """Sends the bytes on a connection of their own and hangs up without reading."""
        with self.connect() as connection:
            with contextlib.suppress(ConnectionError):
                connection.send_bytes(data)
            self.bystander.call(_NOTHING, 12, MetadataResponse)

    @property
    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE_BYTES

    def new_log_lines(self) -> list[str]:
        """The log lines since the last call, without the sums of lines that earlier requests have caused."""
        size = self.cluster.log_size
        lines = self.cluster.log(self._log_seen).splitlines() if size > self._log_seen else []
        self._log_seen = size
        return [line for line in lines if LEFT_OUT not in line]

    def assert_unharmed(self) -> list[str]:
        """Fails if the node has ended, or does not answer correctly; returns what it logged since the last call."""
        assert list(self.cluster.pids.values()) == [self.pid], f"the node is gone:\n{self.cluster.log()[-3000:]}"
        began = time.monotonic()
        self.bystander.call(_NOTHING, 12, MetadataResponse)
        assert time.monotonic() - began < PATIENCE_S
        lines = self.new_log_lines()
        for line in lines:
            assert "Traceback" not in line, "\n".join(lines)
            assert len(line) <= LOG_LINE_LIMIT, f"{len(line)} characters in one line: {line[:200]}"
        return lines

    def close(self) -> None:
        self.bystander.close()
