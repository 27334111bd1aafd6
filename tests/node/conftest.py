"""A whole node on simulated seams; tests pass request bytes to its dispatcher, like a connection."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from quire.config.broker_config import BrokerConfig
from quire.network.handler import CloseConnection, ConnectionInfo, EncodedResponse
from quire.node.dispatch import HEADER, Dispatcher
from quire.node.node import Node
from quire.pending import Pending
from quire.protocol import apis, codec
from quire.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from quire.protocol.schema import Message
from quire.seams import FileSlice
from simulator.clock import HostClock, SimClock
from simulator.disk import SimDisk
from simulator.jobs import SimJobs
from simulator.network import SimNetwork
from simulator.random import SimRandom

M = TypeVar("M", bound=Message)


class SimulatedNode:
    def __init__(self, disk: SimDisk | None = None, settings: dict[str, str] | None = None, seed: int = 1) -> None:
        self.clock = SimClock()
        self.disk = disk or SimDisk()
        random = SimRandom(seed)
        self.network = SimNetwork(self.clock, random.stream("network"))
        host_clock = HostClock(self.clock)
        self.jobs = SimJobs(host_clock, random.stream("jobs"))
        self.node = Node(
            BrokerConfig.standalone({"log.dirs": "/data", **(settings or {})}),
            clock=host_clock,
            random=random.stream("node"),
            disk=self.disk,
            jobs=self.jobs,
            network=self.network.host("node"),
        )
        self.failures: list[str] = []
        self.node.failed = self.failures.append
        self.info = ConnectionInfo(1, "PLAINTEXT", "client:1")

    @property
    def dispatch(self) -> Dispatcher:
        handle = self.node.server.handle
        assert isinstance(handle, Dispatcher)
        return handle

    def start(self) -> "SimulatedNode":
        self.node.start()
        self.clock.run_until(lambda: self.node.ready.done)
        return self

    def stop(self) -> SimDisk:
        stopped = self.node.stop()
        self.clock.run_until(lambda: stopped.done)
        return self.disk.kill()

    def frame(self, request: Message, version: int) -> memoryview:
        """A request's bytes without their length."""
        key = request.API_KEY
        assert key is not None
        frame = HEADER.pack(key, version, 77, 4) + b"test"
        if apis.request_header_version(key, version) >= 2:
            frame += b"\0"
        return memoryview(bytearray(frame + codec.encode(request, version)))

    def send(self, request: Message, version: int) -> Pending[bytes | None]:
        """The answer's bytes without their length, when it is available."""
        answer: Pending[bytes | None] = Pending()
        reply = self.dispatch(self.info, self.frame(request, version))
        if isinstance(reply, Pending):
            reply.when_done(lambda parts: answer.complete(joined(parts)))
        else:
            answer.complete(joined(reply))
        return answer

    def call(self, request: Message, version: int, expected: type[M]) -> M:
        answer = self.send(request, version)
        self.clock.run_until(lambda: answer.done)
        body = answer.value
        assert body is not None
        key = request.API_KEY
        assert key is not None
        header = 5 if apis.response_header_version(key, version) else 4
        assert int.from_bytes(body[:4]) == 77
        return codec.decode(expected, body[header:], version)

    def create_topic(self, name: str, partitions: int = 1, **settings: str) -> None:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        topic.configs = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()
        ]
        response = self.call(CreateTopicsRequest(topics=[topic]), 7, CreateTopicsResponse)
        assert response.topics[0].error_code == 0, response


def joined(parts: EncodedResponse) -> bytes | None:
    assert not isinstance(parts, CloseConnection), parts
    if parts is None:
        return None
    whole = b"".join(part.read() if isinstance(part, FileSlice) else bytes(part) for part in parts)
    assert int.from_bytes(whole[:4]) == len(whole) - 4
    return whole[4:]


@pytest.fixture
def node() -> SimulatedNode:
    return SimulatedNode().start()


@pytest.fixture
def make_node() -> Callable[..., SimulatedNode]:
    return SimulatedNode
