"""A controller on a simulated disk and virtual time, for the tests of this folder."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from quire.config.broker_config import BrokerConfig
from quire.controller.format import format_node
from quire.controller.metadata_replica import MetadataReplica
from quire.metadata.features import SUPPORTED
from quire.metadata.image import ClusterImage
from quire.node.context import ANONYMOUS, Context
from quire.node.to_controller import ToController
from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from quire.protocol.messages import broker_registration
from quire.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quire.raft.peers import NoPeers
from quire.storage.directory.meta_properties import read_meta
from simulator.clock import HostClock, SimClock
from simulator.disk import SimDisk
from simulator.jobs import SimJobs
from simulator.network import SimNetwork
from simulator.random import SimRandom

T = TypeVar("T")

DATA = "/data"
NODE_ID = 1
FROM_A_NODE = Context("CONTROLLER", ANONYMOUS, "quire-2", "")
"""Requests with it came over the controller listener, so they are not sent on to another controller."""


class SimController:
    """One node's controller: formatted and opened; `start` also registers and unfences its own broker."""

    def __init__(self, disk: SimDisk | None = None, seed: int = 1, **settings: str) -> None:
        self.random = SimRandom(seed)
        self._world = SimClock()
        self.clock = HostClock(self._world)
        self.disk = disk or SimDisk(self.random.stream("disk"))
        self.jobs = SimJobs(self.clock, self.random.stream("jobs"))
        self.failures: list[Exception] = []
        given = {
            "node.id": str(NODE_ID),
            "log.dirs": DATA,
            **{key.replace("_", "."): settings[key] for key in settings},
        }
        self.config = BrokerConfig.standalone(given)
        self.cluster_id = format_node(self.disk, self.random, self.config, now_ms=self.clock.now_ms())
        meta = read_meta(self.disk, DATA)
        assert meta is not None
        self.directory_id = meta.directory_id
        self.incarnation_id = self.random.uuid()
        """The incarnation id of this process and of the broker in it."""
        self.network = SimNetwork(self._world, self.random.stream("network"))
        self.replica = MetadataReplica(
            self.config,
            self.cluster_id,
            meta.directory_id,
            self.incarnation_id,
            clock=self.clock,
            random=self.random,
            disk=self.disk,
            jobs=self.jobs,
            peers=NoPeers(),
            network=self.network.host("node"),
            failed=self.failures.append,
        )
        self.controller = ToController(
            self.replica, self.config, clock=self.clock, network=self.network.host("node"), random=self.random
        )
        self.broker_epoch = -1

    @property
    def image(self) -> ClusterImage:
        return self.replica.image

    def open(self) -> "SimController":
        self.replica.open()
        self.run()
        return self

    def start(self) -> "SimController":
        """Opens it, registers its broker and unfences that broker."""
        self.open()
        self.register()
        self.heartbeat()
        assert self.image.brokers[NODE_ID].is_active
        return self

    def run(self, duration_ms: float = 200) -> None:
        self._world.run_for(duration_ms)

    def run_until(self, condition: Callable[[], bool]) -> None:
        self._world.run_until(condition)

    def freeze(self, duration_ms: float) -> None:
        """Time passes while this process is paused."""
        self.clock.process.pause()
        self._world.run_for(duration_ms)
        self.clock.process.resume()

    def settle(self, pending: Pending[T]) -> T:
        self.run()
        return pending.value

    def now_ms(self) -> int:
        return self.clock.now_ms()

    def registration(self, broker_id: int = NODE_ID, **fields: object) -> broker_registration.BrokerRegistrationRequest:
        request = broker_registration.BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=self.cluster_id,
            incarnation_id=self.incarnation_id if broker_id == NODE_ID else self.random.uuid(),
            listeners=[broker_registration.Listener(name="PLAINTEXT", host="localhost", port=9092)],
            features=[
                broker_registration.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(SUPPORTED.items())
            ],
            log_dirs=[self.directory_id if broker_id == NODE_ID else self.random.uuid()],
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return request

    def register(self, broker_id: int = NODE_ID, **fields: object) -> int:
        request = self.registration(broker_id, **fields)
        response = self.settle(self.controller.register_broker(request, sender(broker_id)))
        assert response.error_code == ErrorCode.NONE, ErrorCode(response.error_code)
        if broker_id == NODE_ID:
            self.broker_epoch = response.broker_epoch
        return response.broker_epoch

    def heartbeat(
        self, broker_id: int = NODE_ID, epoch: int | None = None, **fields: object
    ) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self.broker_epoch if epoch is None else epoch,
            current_metadata_offset=self.image.offset,
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return self.settle(self.controller.broker_heartbeat(request, sender(broker_id)))

    def close_connection(self, broker_id: int) -> None:
        """Closes the connection over which another broker sends its heartbeats."""
        assert self.replica.active is not None
        self.replica.active.connection_closed(connection_of(broker_id))

    def create(self, name: str, partitions: int = 1, replication_factor: int = 1) -> CreateTopicsResponse:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication_factor)
        return self.settle(self.controller.create_topics(CreateTopicsRequest(topics=[topic])))


def sender(broker_id: int) -> Context | None:
    """Other brokers are on other nodes, each with its own connection."""
    return None if broker_id == NODE_ID else replace(FROM_A_NODE, connection_id=connection_of(broker_id))


def connection_of(broker_id: int) -> int:
    return 100 + broker_id
