"""A node: broker and controller in one process, put together from its parts and the five seams.

Starting goes from the bottom up: take the data directories, open the metadata log and win its (one-node) election,
replay what is committed, load the logs and flush what a crash left unflushed, listen, register as a broker, and when
the controller has let this broker in, serve. Requests that come earlier wait. Stopping goes the other way and ends with
the clean-shutdown mark. Whatever of this fails is told once through `failed`; the caller ends the process.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from quire.config.broker_config import BrokerConfig
from quire.config.topic_config import TopicConfig
from quire.controller.controller import Controller
from quire.coordinators.runtime.channel import Channel
from quire.coordinators.runtime.runtime import CoordinatorRuntime
from quire.coordinators.runtime.state_log import StateLog
from quire.metadata.delta import ImageDelta
from quire.metadata.image import BROKER, TOPIC, BrokerImage, ClusterImage, PartitionImage
from quire.network.limits import Limits
from quire.network.server import Server
from quire.node import compaction
from quire.node.authorizer import Authorizer
from quire.node.batch_checks import BatchChecks
from quire.node.broker_lifecycle import NO_EPOCH, BrokerLifecycle
from quire.node.channel import OwnChannel
from quire.node.coordinators import Coordinators
from quire.node.directories import check_that_no_log_is_there_twice, open_directories
from quire.node.dispatch import Dispatcher, changes_something
from quire.node.faults import Faults
from quire.node.fetch_sessions import FetchSessions
from quire.node.partitions import Partitions
from quire.node.producer_ids import ProducerIds
from quire.node.registration import as_broker, as_controller
from quire.node.retention import Retention
from quire.node.slices import Slices
from quire.node.throttle import Throttle
from quire.node.topic_settings import log_config
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from quire.seams import Clock, Disk, Jobs, Network, Random, Timer
from quire.storage import LogConfig
from quire.storage.cleaning.cleaner import Cleaner
from quire.storage.errors import DataDirectoryError
from quire.storage.log_directory import LogDirectory
from quire.storage.reserve import Reserve
from quire.storage.reserving_disk import ReservingDisk

log = logging.getLogger("quire.node")

STOP_DEADLINE_MS = 5_000


class Node:
    def __init__(
        self, config: BrokerConfig, *, clock: Clock, random: Random, disk: Disk, jobs: Jobs, network: Network
    ) -> None:
        self.config = config
        self.clock = clock
        self.random = random
        self.disk = disk
        self.jobs = jobs
        self.node_id = config.node_id
        self.authorizer = Authorizer()
        self.throttle = Throttle()
        self.faults: Faults | None = None
        """Failures on request; only `quire.testing` switches them on."""
        self.fetch_sessions = FetchSessions(config.get_int("max.incremental.fetch.session.cache.slots"), random)
        self.fetch_max_bytes = config.get_int("fetch.max.bytes")
        self.expansion_max_bytes = config.get_int("quire.max.decompressed.bytes")
        self.batch_checks = BatchChecks(jobs)
        self.ready: Pending[str] = Pending()
        """Completed with `host:port` for the clients of the first broker listener when the node serves."""
        self.failed: Callable[[str], None] = lambda reason: log.error("the node cannot go on: %s", reason)
        self.ports: dict[str, int] = {}
        """The bound port of each listener."""
        self.slices = Slices(clock)
        self.partitions = Partitions(config, clock)
        self.retention = Retention(self.partitions, clock)
        self.cleaner = Cleaner(
            disk, clock, jobs, random, compaction.settings(config), compaction.candidates(self.partitions)
        )
        self.channel: Channel = OwnChannel(self)
        """To partitions and coordinators, also this node's own."""
        self.state_log: Callable[[StateLog], StateLog] = lambda state_log: state_log
        """What a coordinator's own log is put behind; the simulator has it lose and delay what passes."""
        self.coordinators = Coordinators(self)
        self._dispatcher = Dispatcher(self)
        self.server = Server(network, clock, self._dispatcher, limits_of(config), matters=changes_something)
        self._controller_listeners = {listener.name for listener in config.topology.controller_listeners}
        self.producer_ids = ProducerIds(self._allocate_producer_ids)
        self.broker: BrokerLifecycle | None = None
        self._controller: Controller | None = None
        self._directories: list[LogDirectory] = []
        self._timers: dict[str, Timer] = {}
        """Of what is repeated, by the setting that says how often."""
        self._stopping = False
        config.when_changed(self._settings_changed)

    # Starting

    def start(self) -> None:
        """Begins to start; `ready` tells when that is done. Raises DataDirectoryError, MetadataLogError or OSError."""
        config = self.config
        directories = open_directories(
            config,
            disk=self.disk,
            clock=self.clock,
            jobs=self.jobs,
            random=self.random,
            on_failure=self._directory_failed,
        )
        self._directories = list(directories.values())
        meta = directories[config.metadata_log_dir].meta
        assert meta is not None, "opened directories are formatted"
        self.cluster_id = meta.cluster_id
        self.partitions.use([directories[path] for path in config.log_dirs])
        reserve = self._set_room_aside()
        self._controller = Controller(
            config,
            meta.cluster_id,
            meta.directory_id,
            clock=self.clock,
            random=self.random,
            disk=ReservingDisk(self.disk, reserve),
            jobs=self.jobs,
            failed=lambda error: self.failed(f"the metadata log failed: {error}"),
        )
        self._controller.when_active(self._controller_active)
        self._controller.open()

    def _set_room_aside(self) -> Reserve:
        """For the metadata log; see `quire.storage.reserve`."""
        folder = self.config.metadata_log_dir
        reserve = Reserve(self.disk, self.random, folder, self.config.get_int("quire.reserve.bytes"))
        reserve.set_aside()
        for directory in self._directories:
            if directory.failure is None and self.disk.is_same_disk(directory.path, folder):
                directory.reserve = reserve
        return reserve

    def _controller_active(self) -> None:
        """Everything committed has been replayed and this node leads: it can see to its logs, and then take part."""
        with self._starting():
            self._load()
            check_that_no_log_is_there_twice(self.partitions.directories(), self.image)
            each_of(self.partitions.directories(), LogDirectory.prepare_use, self._logs_ready)

    def _logs_ready(self) -> None:
        """The logs are as their topics want them to be: the node can listen, register and be let in."""
        if self._stopping:
            return
        with self._starting():
            self.controller.loader.subscribe(self._metadata_changed)
            self.partitions.set_strays_aside()
            self._listen()
            self._register(self.random.uuid())

    @contextmanager
    def _starting(self) -> Iterator[None]:
        try:
            yield
        except (OSError, DataDirectoryError) as error:
            self.failed(f"the node cannot start: {error}")
        except Exception as error:
            # A node that neither serves nor ends is the worst of all.
            log.exception("the node failed while it started")
            self.failed(f"the node cannot start: {error!r}")

    def _register(self, incarnation_id: bytes) -> None:
        registration = as_broker(
            self.config,
            self.cluster_id,
            incarnation_id,
            self.ports,
            [directory.meta.directory_id for directory in self.partitions.directories() if directory.meta],
            self._previous_epoch(),
        )
        self.broker = BrokerLifecycle(
            self.controller,
            self.clock,
            registration,
            self.config.get_int("broker.heartbeat.interval.ms"),
            lambda: self.image.offset,
            self.partitions.failed_directory_ids,
            self._serve,
        )
        introduction = as_controller(self.config, incarnation_id, self.ports)
        self.controller.register_controller(introduction, self.clock.now_ms())
        self.broker.start()

    def _previous_epoch(self) -> int:
        """The epoch of the last run if every directory is of that run and was closed cleanly, else -1."""
        epochs = {directory.clean_broker_epoch for directory in self.partitions.directories()}
        epoch = epochs.pop()
        return NO_EPOCH if epochs or epoch is None else epoch

    def _load(self) -> None:
        config_of = cache(self._log_config)  # A topic's logs share one.
        for directory in self.partitions.directories():
            try:
                directory.load_logs(config_of)
            except ApiError:
                # It has said why and is out of service; the others go on.
                continue
            if directory.clean_broker_epoch is None and directory.logs:
                log.info("%s was not stopped cleanly: its logs, %d, were checked", directory.path, len(directory.logs))

    def _log_config(self, topic: str) -> LogConfig:
        return log_config(TopicConfig(self.image.topic_configs(topic), self.config))

    def _listen(self) -> None:
        for listener in self.config.topology.broker_listeners + self.config.topology.controller_listeners:
            self.ports[listener.name] = self.server.listen(listener.name, listener.host, listener.port)

    def _serve(self) -> None:
        """The controller has let this broker in."""
        self._repeat("log.flush.offset.checkpoint.interval.ms", self.partitions.checkpoint)
        self._repeat("replica.high.watermark.checkpoint.interval.ms", self.partitions.checkpoint_high_watermarks)
        self._repeat("producer.id.expiration.check.interval.ms", self._expire_producers)
        self._repeat(
            "log.retention.check.interval.ms", self.retention.look_at_all, first_after="log.initial.task.delay.ms"
        )
        self.cleaner.start()
        self.coordinators.start(self.image)
        self._dispatcher.ready()
        self.ready.complete(self._address())

    def _address(self) -> str:
        """Where clients connect: as bound, or as advertised where that is every interface."""
        topology = self.config.topology
        first = topology.broker_listeners[0]
        bound = self.ports[first.name]
        if first.is_everywhere:
            for advertised in topology.advertised_listeners:
                if advertised.name == first.name:
                    return advertised._replace(port=advertised.port or bound).address
        return first._replace(port=bound).address

    def _repeat(self, setting: str, action: Callable[[], None], *, first_after: str | None = None) -> None:
        """Repeats `action` at the interval of `setting`, as it is each time, whatever becomes of a single run.

        What happens seldom may have another setting for the first time: a node may be restarted more often than that.
        """

        def again() -> None:
            self._repeat(setting, action)
            action()

        self._timers[setting] = self.clock.call_later(self.config.get_int(first_after or setting), again)

    # Running

    @property
    def controller(self) -> Controller:
        assert self._controller is not None, "the node has not been started"
        return self._controller

    @property
    def image(self) -> ClusterImage:
        """The cluster as committed."""
        assert self._controller is not None, "the node has not been started"
        return self._controller.image

    def is_controller_listener(self, name: str) -> bool:
        return name in self._controller_listeners

    def controller_endpoint(self) -> tuple[str, int]:
        listener = self.config.topology.controller_listeners[0]
        return listener.host, self.ports[listener.name]

    def live_brokers(self, listener: str) -> list[tuple[BrokerImage, str, int]]:
        """Brokers that serve, with their address on `listener`."""
        return [
            (broker, endpoint.host, endpoint.port)
            for broker in self.image.brokers_sorted()
            if not broker.fenced and (endpoint := broker.endpoint(listener)) is not None
        ]

    def a_live_broker_id(self) -> int:
        """Whom clients may send requests for the controller to; brokers pass them on."""
        return next((broker.broker_id for broker in self.image.brokers_sorted() if not broker.fenced), -1)

    def transaction_coordinator_id(self, transactional_id: str) -> int:
        """The node that keeps this transactional id; ApiError where there is none."""
        return self.coordinator_id(self.coordinators.transactions, transactional_id)

    def group_coordinator_id(self, group_id: str) -> int:
        return self.coordinator_id(self.coordinators.groups, group_id)

    def coordinator_id(self, runtime: CoordinatorRuntime[Any], name: str) -> int:
        partition = runtime.partition_for(name)
        topic = self.image.topic(runtime.topic)
        leader = -1 if topic is None else topic.partitions[partition].leader
        if leader < 0:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{runtime.topic}-{partition} has no leader: try again")
        return leader

    def offline_replicas(self, partition: PartitionImage) -> list[int]:
        brokers = self.image.brokers
        return [replica for replica in partition.replicas if replica not in brokers or brokers[replica].fenced]

    def _metadata_changed(self, image: ClusterImage, delta: ImageDelta) -> None:
        if any(resource.type == BROKER for resource in delta.configs):
            self.config.apply_dynamic(image.broker_configs(None), image.broker_configs(self.node_id))
        self.partitions.apply(image, delta)
        self.coordinators.apply(image, delta)
        for resource in delta.configs:
            if resource.type == TOPIC and self.ready.done:
                self.retention.look_at_topic(resource.name)

    def _settings_changed(self, _changed: list[str]) -> None:
        self.fetch_max_bytes = self.config.get_int("fetch.max.bytes")
        self.expansion_max_bytes = self.config.get_int("quire.max.decompressed.bytes")
        set_limits(self.server.limits, self.config)
        if self.ready.done:
            self.retention.look_at_all()

    def _allocate_producer_ids(self) -> Pending[tuple[int, int]]:
        assert self.broker is not None, "producers come after the broker"
        request = AllocateProducerIdsRequest(broker_id=self.node_id, broker_epoch=self.broker.epoch)
        answer = self.controller.allocate_producer_ids(request, self.clock.now_ms())
        return answer.then(lambda response: (response.producer_id_start, response.producer_id_len))

    def _expire_producers(self) -> None:
        expiration_ms = self.config.get_int("producer.id.expiration.ms")
        for partition in self.partitions:
            partition.log.producer_state.remove_expired(self.clock.now_ms(), expiration_ms)

    def _directory_failed(self, directory: LogDirectory, error: Exception) -> None:
        self.partitions.directory_failed(directory)
        if not any(other.failure is None for other in self.partitions.directories()):
            self.failed(f"every data directory has failed, the last with: {error}")

    # Stopping

    def stop(self) -> Pending[None]:
        """Leaves the cluster, answers what is in progress, and closes everything with the clean-shutdown mark."""
        stopped: Pending[None] = Pending()
        if self._stopping:
            stopped.complete(None)
            return stopped
        self._stopping = True
        for timer in self._timers.values():
            timer.cancel()
        self.cleaner.stop()
        self.coordinators.stop()
        for partition in self.partitions:
            partition.answer_waiting_fetches()

        def close() -> None:
            self.jobs.stop()
            self.cleaner.close()
            if self._controller is not None:
                self._controller.close()
            for directory in self._directories:
                # One that fails even now has said so, and has no mark: its next start is one as after a crash.
                with suppress(ApiError):
                    directory.close(self.broker.epoch if self.broker is not None else NO_EPOCH)
            stopped.complete(None)

        def flush() -> None:
            self.partitions.deletions.finish()
            self.batch_checks.stop()
            self.partitions.checkpoint_high_watermarks()
            each_of(self._directories, LogDirectory.prepare_close, close)

        def left() -> None:
            self.server.stop(STOP_DEADLINE_MS, flush)

        if self.broker is not None:
            self.broker.leave(left)
        else:
            left()
        return stopped


def each_of(
    directories: list[LogDirectory],
    prepare: Callable[[LogDirectory, Callable[[], None]], None],
    then: Callable[[], None],
) -> None:
    """Lets every directory prepare itself, all at the same time, and calls `then` when the last one has."""
    left = len(directories)

    def prepared() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            then()

    if not directories:
        then()
    for directory in directories:
        prepare(directory, prepared)


def limits_of(config: BrokerConfig) -> Limits:
    limits = Limits()
    set_limits(limits, config)
    return limits


def set_limits(limits: Limits, config: BrokerConfig) -> None:
    limits.request_bytes_max = config.get_int("socket.request.max.bytes")
    limits.idle_ms_max = config.get_int("connections.max.idle.ms")
    limits.connections_max = config.get_int("max.connections")
    limits.connections_per_ip_max = config.get_int("max.connections.per.ip")
    overrides = (item.rpartition(":") for item in config.get_str("max.connections.per.ip.overrides").split(",") if item)
    limits.connections_per_ip_overrides = {address.strip(): int(count) for address, _, count in overrides}
