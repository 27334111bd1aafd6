"""A node: broker, controller or both in one process, put together from its parts and the five seams.

`start.py` takes it through the states of `node_state.py` until it serves; requests that come earlier wait. Stopping
goes the other way and ends with the clean-shutdown mark. What makes the node unable to continue is reported through
`failed`, and the caller ends the process.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from quire.config.broker_config import BrokerConfig
from quire.controller.metadata_replica import MetadataReplica
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
from quire.node.broker_links import BrokerLinks
from quire.node.channel import NodeChannel
from quire.node.controller_lifecycle import ControllerLifecycle
from quire.node.coordinators import Coordinators
from quire.node.directory_assignments import DirectoryAssignments
from quire.node.dispatch import Dispatcher, changes_something
from quire.node.faults import Faults
from quire.node.fetch_sessions import FetchSessions
from quire.node.moves import DiskMoves
from quire.node.node_state import NodeProgress, NodeState
from quire.node.own_vote import OwnVote
from quire.node.partitions import Partitions
from quire.node.previous_registration import epoch_of_clean_stop, forget
from quire.node.producer_ids import ProducerIds
from quire.node.refusals import Refusals
from quire.node.replicas import Replicas
from quire.node.retention import Retention
from quire.node.slices import Slices
from quire.node.start import NodeStart, each_of
from quire.node.throttle import Throttle
from quire.node.to_controller import ToController
from quire.pending import Pending, completed
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from quire.seams import Clock, Disk, Jobs, Network, Random, Timer
from quire.storage.cleaning.cleaner import Cleaner
from quire.storage.directory.log_directory import LogDirectory

log = logging.getLogger("quire.node")

STOP_DEADLINE_MS = 5_000


class Node:
    cluster_id: str
    metadata: MetadataReplica
    to_controller: ToController
    """Set by the first step of the start."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock,
        random: Random,
        disk: Disk,
        jobs: Jobs,
        network: Network,
        may_format: bool = True,
    ) -> None:
        """A node that is alone formats its empty directories, if it `may_format` them."""
        self.config = config
        self.clock = clock
        self.random = random
        self.disk = disk
        self.jobs = jobs
        self.network = network
        self.may_format = may_format
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
        """Completed with `host:port` of the first listener for clients when the node serves; of the controller's
        if the node is not a broker."""
        self.failed: Callable[[str], None] = lambda reason: log.error("the node cannot continue: %s", reason)
        self.ports: dict[str, int] = {}
        """The bound port of each listener."""
        self.slices = Slices(clock)
        self.replicas = Replicas(self)
        self.partitions = Partitions(config, clock, self.replicas)
        self.retention = Retention(self.partitions, clock)
        self.cleaner = Cleaner(
            disk, clock, jobs, random, compaction.settings(config), compaction.candidates(self.partitions)
        )
        self.cleaner.damaged = compaction.report_damage(self.partitions)
        self.broker_links = BrokerLinks(
            config.node_id,
            config.topology.inter_broker_listener,
            lambda: self.image,
            clock=clock,
            network=network,
            random=random,
            timeout_ms=lambda: config.get_int("request.timeout.ms"),
        )
        self.channel: Channel = NodeChannel(self, self.broker_links)
        """To partitions and coordinators, also this node's own."""
        self.state_log: Callable[[StateLog], StateLog] = lambda state_log: state_log
        """Wraps a coordinator's own log; the simulator replaces it, to lose and delay requests."""
        self.coordinators = Coordinators(self)
        self.refusals = Refusals(self)
        self.dispatcher = Dispatcher(self)
        self.server = Server(
            network,
            clock,
            self.dispatcher,
            limits_of(config),
            matters=changes_something,
            disconnected=lambda info: self.to_controller.connection_closed(info.listener, info.connection_id),
        )
        self._controller_listeners = {listener.name for listener in config.topology.controller_listeners}
        self.producer_ids = ProducerIds(self._allocate_producer_ids)
        self.moves = DiskMoves(self)
        self.broker: BrokerLifecycle | None = None
        self.controller: ControllerLifecycle | None = None
        self.own_vote: OwnVote | None = None
        self.directory_assignments: DirectoryAssignments | None = None
        self.directories: list[LogDirectory] = []
        """All that this node has locked, that of the metadata log among them."""
        self._timers: dict[str, Timer] = {}
        """Repeated tasks, by the setting that says how often they run."""
        self.progress = NodeProgress()
        config.when_changed(self._settings_changed)

    # --- Starting

    def start(self) -> None:
        """Begins to start; `ready` is completed when the node serves.

        Raises DataDirectoryError, MetadataLogError or OSError.
        """
        NodeStart(self).begin()

    def serve(self) -> None:
        """The controller has unfenced this broker."""
        self._repeat("log.flush.offset.checkpoint.interval.ms", self.partitions.checkpoint)
        self._repeat("replica.high.watermark.checkpoint.interval.ms", self.partitions.checkpoint_high_watermarks)
        self._repeat("producer.id.expiration.check.interval.ms", self._expire_producers)
        self._repeat(
            "log.retention.check.interval.ms", self.retention.look_at_all, first_after="log.initial.task.delay.ms"
        )
        self.cleaner.start()
        self.replicas.start()
        self.coordinators.start(self.image)
        self.dispatcher.answer(self.config.topology.broker_listeners)
        self.ready.complete(self._address())

    def serve_as_controller(self) -> None:
        """This node is not a broker, and its image has everything that was committed when it started."""
        self.ready.complete(self._address())

    def _address(self) -> str:
        """Where clients connect: as bound, or as advertised where that is every interface."""
        topology = self.config.topology
        first = (topology.broker_listeners or topology.controller_listeners)[0]
        bound = self.ports[first.name]
        if first.is_everywhere:
            for advertised in topology.advertised_listeners:
                if advertised.name == first.name:
                    return advertised._replace(port=advertised.port or bound).address
        return first._replace(port=bound).address

    def _repeat(self, setting: str, action: Callable[[], None], *, first_after: str | None = None) -> None:
        """Repeats `action` at the interval of `setting`, as it is each time, even if a run fails.

        What happens seldom may have another setting for the first time: a node may be restarted more often than that.
        """

        def again() -> None:
            self._repeat(setting, action)
            action()

        self._timers[setting] = self.clock.call_later(self.config.get_int(first_after or setting), again)

    # --- Running

    @property
    def image(self) -> ClusterImage:
        """The cluster as committed."""
        return self.metadata.loader.image

    def is_controller_listener(self, name: str) -> bool:
        return name in self._controller_listeners

    def controllers(self, listener: str) -> dict[int, tuple[str, int]]:
        """The address of each controller: as it has registered, or as the quorum knows it."""
        found = {voter.key.id: (each.host, each.port) for voter in self.metadata.log.voters for each in voter.endpoints}
        for controller in self.image.controllers.values():
            for endpoint in controller.endpoints:
                if endpoint.name == listener:
                    found[controller.controller_id] = endpoint.host, endpoint.port
        return dict(sorted(found.items()))

    def live_brokers(self, listener: str) -> list[tuple[BrokerImage, str, int]]:
        """Brokers that serve, with their address on `listener`."""
        return [found for found in self.brokers(listener) if not found[0].fenced]

    def brokers(self, listener: str) -> list[tuple[BrokerImage, str, int]]:
        """All registered brokers that have `listener`, with their address on it."""
        return [
            (broker, endpoint.host, endpoint.port)
            for broker in self.image.brokers_sorted()
            if (endpoint := broker.endpoint(listener)) is not None
        ]

    def a_live_broker_id(self) -> int:
        """The node to which clients send requests for the controller: this broker, which forwards them."""
        own = self.image.brokers.get(self.node_id)
        if own is not None and not own.fenced:
            return self.node_id
        return next((broker.broker_id for broker in self.image.brokers_sorted() if not broker.fenced), -1)

    def transaction_coordinator_id(self, transactional_id: str) -> int:
        """The node that coordinates this transactional id; ApiError if there is none."""
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

    def broker_configs_changed(self, image: ClusterImage, delta: ImageDelta) -> None:
        """From the first record on: the controller decides by these settings before the partitions are there."""
        if any(resource.type == BROKER for resource in delta.configs):
            self.config.apply_dynamic(image.broker_configs(None), image.broker_configs(self.node_id))

    def metadata_changed(self, image: ClusterImage, delta: ImageDelta) -> None:
        if delta.brokers:
            self.broker_links.brokers_changed()
        self.replicas.throttles.metadata_changed(image, delta)
        self.partitions.apply(image, delta)
        self.moves.image_changed(image, delta)
        if delta.brokers:
            self.replicas.brokers_changed(image)
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
        answer = self.to_controller.allocate_producer_ids(request)
        return answer.then(lambda response: (response.producer_id_start, response.producer_id_len))

    def _expire_producers(self) -> None:
        expiration_ms = self.config.get_int("producer.id.expiration.ms")
        for partition in self.partitions:
            partition.log.producer_state.remove_expired(self.clock.now_ms(), expiration_ms)

    def directory_failed(self, directory: LogDirectory, error: Exception) -> None:
        forget(self.directories)
        self.partitions.directory_failed(directory)
        self.moves.directory_failed(directory)
        if not any(other.failure is None for other in self.partitions.directories()):
            self.fail(f"every data directory has failed, the last with: {error}")

    def fail(self, reason: str) -> None:
        """The node cannot continue: stops what would hold up the end of the process, and tells the caller."""
        for directory in self.directories:
            directory.cancel_loading()
        self.failed(reason)

    # --- Stopping

    def stop(self) -> Pending[None]:
        """Leaves the cluster, answers what is in progress, and closes everything with the clean-shutdown mark."""
        stopped: Pending[None] = Pending()
        if self.progress.is_stopping:
            stopped.complete(None)
            return stopped
        follows_image, is_started = self.progress.follows_image, self.progress.state is not NodeState.CREATED
        self.progress.enter(NodeState.STOPPING)
        if self.controller is not None:
            self.controller.end()
        if self.own_vote is not None:
            self.own_vote.end()
        if self.directory_assignments is not None:
            self.directory_assignments.stop()
        for timer in self._timers.values():
            timer.cancel()
        self.cleaner.stop()
        self.moves.stop()
        self.coordinators.stop()
        for partition in self.partitions:
            partition.waiting_fetches.answer()

        def close() -> None:
            self.jobs.stop()
            self.cleaner.close()
            if is_started:
                self.to_controller.close()
                self.broker_links.close()
                self.metadata.close()
            # Now, as a repair that waited for another broker has just been told that the link is closed.
            self.replicas.repairs.close()
            epoch = epoch_of_clean_stop(self.directories, NO_EPOCH if self.broker is None else self.broker.epoch)
            for directory in self.directories:
                # A directory that fails now has reported it and has no mark: it is recovered at the next start.
                with suppress(ApiError):
                    directory.close(epoch)
            self.progress.enter(NodeState.STOPPED)
            stopped.complete(None)

        def flush() -> None:
            self.partitions.deletions.finish()
            self.batch_checks.stop()
            if follows_image:
                self.partitions.checkpoint_high_watermarks()
            each_of(self.directories, LogDirectory.prepare_close, close)

        def left() -> None:
            self.replicas.stop()
            # First of all: when the other voters can no longer connect, nothing that requests wait for is committed.
            handed_over = self.metadata.hand_over() if is_started else completed(None)
            handed_over.when_done(lambda _: self.server.stop(STOP_DEADLINE_MS, flush))

        if self.broker is not None:
            self.broker.leave(left)
        else:
            left()
        return stopped


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
