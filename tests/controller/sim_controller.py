"""A controller on a simulated disk and virtual time, as the tests of this folder use it."""

from typing import TypeVar

from quire.config.broker_config import BrokerConfig
from quire.controller.controller import Controller
from quire.controller.format import format_node
from quire.metadata.features import SUPPORTED
from quire.metadata.image import ClusterImage
from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from quire.protocol.messages import broker_registration
from quire.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quire.storage.meta_properties import read_meta
from simulator.clock import SimClock
from simulator.disk import SimDisk
from simulator.jobs import SimJobs
from simulator.random import SimRandom

T = TypeVar("T")

DATA = "/data"
NODE_ID = 1


class SimController:
    """One node's controller: formatted, opened and, with `register`, with its own broker in service."""

    def __init__(self, disk: SimDisk | None = None, seed: int = 1, **settings: str) -> None:
        self.random = SimRandom(seed)
        self.clock = SimClock()
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
        self.controller = Controller(
            self.config,
            self.cluster_id,
            meta.directory_id,
            clock=self.clock,
            random=self.random,
            disk=self.disk,
            jobs=self.jobs,
            failed=self.failures.append,
        )
        self.broker_epoch = -1

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    def open(self) -> "SimController":
        self.controller.open()
        self.run()
        return self

    def start(self) -> "SimController":
        """Opens it, registers its broker and lets that one in."""
        self.open()
        self.register()
        self.heartbeat()
        assert self.image.brokers[NODE_ID].is_active
        return self

    def run(self, duration_ms: float = 200) -> None:
        self.clock.run_for(duration_ms)

    def settle(self, pending: Pending[T]) -> T:
        self.run()
        return pending.value

    def now_ms(self) -> int:
        return self.clock.now_ms()

    def registration(self, broker_id: int = NODE_ID, **fields: object) -> broker_registration.BrokerRegistrationRequest:
        request = broker_registration.BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=self.cluster_id,
            incarnation_id=self.random.uuid(),
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
        response = self.settle(self.controller.register_broker(request, self.now_ms()))
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
        return self.settle(self.controller.broker_heartbeat(request, self.now_ms()))

    def create(self, name: str, partitions: int = 1, replication_factor: int = 1) -> CreateTopicsResponse:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication_factor)
        return self.settle(self.controller.create_topics(CreateTopicsRequest(topics=[topic]), self.now_ms()))
