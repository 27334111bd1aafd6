"""Starts a node: one step for each state of `node_state.py`, each begun when the one before has done its work.

Nothing here blocks the event loop for long: the logs are opened in jobs, and the controller listener answers from the
moment when the metadata log is open. What goes wrong is reported once through `Node.failed`, and the caller ends the
process.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from quire.config.listeners import Listener
from quire.config.topic_config import TopicConfig
from quire.controller.metadata_replica import MetadataReplica
from quire.metadata.delta import ImageDelta
from quire.metadata.image import ClusterImage, TopicImage
from quire.node.broker_lifecycle import NO_EPOCH, BrokerLifecycle
from quire.node.controller_lifecycle import ControllerLifecycle
from quire.node.directories import check_that_no_log_is_there_twice, open_directories
from quire.node.directory_assignments import DirectoryAssignments
from quire.node.lost_replicas import LostReplicas
from quire.node.moves import leftovers
from quire.node.node_state import NodeState
from quire.node.own_vote import OwnVote
from quire.node.partitions.hosted import PartitionId
from quire.node.previous_registration import lost_replicas, previous_epoch, register_from, remember
from quire.node.raft_peers import RaftPeers
from quire.node.registration import as_broker, as_controller, controller_endpoints
from quire.node.to_controller import ToController
from quire.node.topic_settings import log_config
from quire.raft.metadata_log import MetadataLog
from quire.storage import LogConfig
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.directory.reserve import Reserve
from quire.storage.directory.reserving_disk import ReservingDisk
from quire.storage.errors import DataDirectoryError
from quire.storage.few_jobs import FewJobs

if TYPE_CHECKING:
    from quire.node.node import Node

log = logging.getLogger("quire.node")


LOADING_JOBS = 2
"""How many jobs open logs at a time, in all directories together; there are more threads than that."""


FIRST_PATIENCE_MS = 3_000
"""After this time the log says what the start waits for: a user may have forgotten the other controllers."""
CATCH_UP_PATIENCE_MS = 10_000
"""Then this is the time between two warnings."""

REASONS_MAX = 5
"""How many controllers that do not answer it names."""


class NodeStart:
    __slots__ = (
        "_first_patience",
        "_follows_image",
        "_image_before_loading",
        "_incarnation_id",
        "_leftovers",
        "_lost",
        "_node",
        "_removed_topics",
    )

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._incarnation_id = b""
        """Tells this run of the node from earlier ones."""
        self._follows_image = False
        """Whether partitions and coordinators are what the image says."""
        self._image_before_loading = ClusterImage()
        self._leftovers = leftovers.Leftovers({}, {}, [])
        self._lost: list[PartitionId] = []
        """Replicas that the controller does not know to be lost."""
        self._removed_topics: list[TopicImage] = []
        """Topics that were deleted before the partitions follow the image, while the controller listener answers."""

    # --- CREATED

    def begin(self) -> None:
        """Raises DataDirectoryError, MetadataLogError or OSError; later failures go to `Node.failed`."""
        node, config = self._node, self._node.config
        directories = open_directories(
            config,
            may_format=node.may_format,
            disk=node.disk,
            clock=node.clock,
            jobs=node.jobs,
            random=node.random,
            on_failure=node.directory_failed,
        )
        node.directories = list(directories.values())
        self._incarnation_id = node.random.uuid()
        meta = directories[config.metadata_log_dir].meta
        assert meta is not None, "opened directories are formatted"
        node.cluster_id = meta.cluster_id
        if config.topology.is_broker:
            node.partitions.use([directories[path] for path in config.log_dirs])
        node.metadata = MetadataReplica(
            config,
            meta.cluster_id,
            meta.directory_id,
            self._incarnation_id,
            clock=node.clock,
            random=node.random,
            disk=ReservingDisk(node.disk, self._set_room_aside()),
            jobs=node.jobs,
            peers=RaftPeers(
                config.node_id,
                config.get_int("controller.quorum.request.timeout.ms"),
                clock=node.clock,
                network=node.network,
                random=node.random,
            ),
            network=node.network,
            failed=lambda error: node.fail(f"the metadata log failed: {error}"),
        )
        node.to_controller = ToController(
            node.metadata, config, clock=node.clock, network=node.network, random=node.random
        )
        self._listen(config.topology.controller_listeners)
        node.metadata.log.own_endpoints = controller_endpoints(config, node.ports)
        node.progress.enter(NodeState.CATCHING_UP)
        node.metadata.loader.subscribe(node.broker_configs_changed)
        node.metadata.loader.subscribe(self._note_removed_topics)
        node.metadata.open()
        node.dispatcher.answer(config.topology.controller_listeners)
        if config.topology.is_controller:
            self._register_controller()
        self._first_patience = node.clock.call_later(FIRST_PATIENCE_MS, self._report_missing)
        self._catch_up()

    def _register_controller(self) -> None:
        node = self._node
        node.controller = ControllerLifecycle(
            node.metadata,
            node.to_controller,
            as_controller(node.config, self._incarnation_id, node.ports),
            clock=node.clock,
            random=node.random,
        )
        node.controller.start()
        node.own_vote = OwnVote(
            node.metadata.log,
            node.to_controller,
            node.cluster_id,
            clock=node.clock,
            interval_ms=node.config.get_int("controller.quorum.fetch.timeout.ms"),
            may_join=node.config.get_bool("controller.quorum.auto.join.enable"),
            is_alone=node.config.topology.is_alone,
        )
        node.own_vote.start()

    def _set_room_aside(self) -> Reserve:
        """For the metadata log; see `quire.storage.directory.reserve`."""
        node = self._node
        folder = node.config.metadata_log_dir
        reserve = Reserve(node.disk, node.random, folder, node.config.get_int("quire.reserve.bytes"))
        reserve.set_aside()
        for directory in node.directories:
            if directory.failure is None and node.disk.is_same_disk(directory.path, folder):
                directory.reserve = reserve
        return reserve

    def _listen(self, listeners: Iterable[Listener]) -> None:
        node = self._node
        for listener in listeners:
            node.ports[listener.name] = node.server.listen(listener.name, listener.host, listener.port)

    # --- CATCHING_UP

    def _note_removed_topics(self, _image: ClusterImage, delta: ImageDelta) -> None:
        if not self._follows_image:
            self._removed_topics += delta.removed_topics.values()

    def _catch_up(self) -> None:
        """Continues when the image has all that was committed by now, whether this node leads the quorum or another."""

        def asked(is_up_to_date: bool) -> None:
            if is_up_to_date:
                self._caught_up()
            elif not self._node.progress.is_stopping:
                log.warning(
                    "still waiting for the metadata log after another %d s: %s",
                    CATCH_UP_PATIENCE_MS // 1000,
                    _what_is_missing(self._node.metadata.log),
                )
                self._catch_up()

        self._node.to_controller.when_up_to_date(CATCH_UP_PATIENCE_MS).when_done(asked)

    def _report_missing(self) -> None:
        if not self._node.progress.is_stopping:
            log.info("waiting for the metadata log: %s", _what_is_missing(self._node.metadata.log))

    def _caught_up(self) -> None:
        self._first_patience.cancel()
        if self._node.progress.is_stopping:
            return
        with self._failing():
            if self._node.config.topology.is_broker:
                self._node.progress.enter(NodeState.RECOVERING)
                self._load_logs()
            else:
                self._node.progress.enter(NodeState.SERVING)
                self._node.serve_as_controller()

    # --- RECOVERING

    def _load_logs(self) -> None:
        node = self._node
        self._image_before_loading = node.image.copy()
        config_of = cache(self._log_config)  # The logs of a topic share one.
        jobs = FewJobs(node.jobs, LOADING_JOBS)

        def load(directory: LogDirectory, then: Callable[[], None]) -> None:
            directory.load_logs(config_of, jobs, then, self._failed)

        each_of(node.partitions.directories(), load, self._logs_loaded)

    def _log_config(self, topic: str) -> LogConfig:
        node = self._node
        return log_config(TopicConfig(node.image.topic_configs(topic), node.config))

    def _logs_loaded(self) -> None:
        if self._node.progress.is_stopping:
            return
        directories = self._node.partitions.directories()
        for directory in directories:
            if directory.failure is None and directory.clean_broker_epoch is None and directory.logs:
                found = len(directory.logs)
                checked = "its log was" if found == 1 else f"its {found} logs were"
                log.info("%s was not stopped cleanly: %s checked", directory.path, checked)
        with self._failing():
            self._leftovers = leftovers.settle(directories, self._node.image)
            check_that_no_log_is_there_twice(directories, self._node.image)
            self._node.moves.logs_loaded(self._leftovers.restarts)
            each_of(directories, LogDirectory.prepare_use, self._logs_ready)

    def _logs_ready(self) -> None:
        if self._node.progress.is_stopping:
            return
        with self._failing():
            self._node.progress.enter(NodeState.REGISTERING)
            self._listen(self._node.config.topology.broker_listeners)
            self._register()

    # --- REGISTERING

    def _register(self) -> None:
        node, directories = self._node, self._node.partitions.directories()
        epoch = previous_epoch(directories, node.image, node.node_id)
        if epoch != NO_EPOCH:
            register_from(directories, epoch, self._incarnation_id)
            self._lost = lost_replicas(directories, self._image_before_loading, node.node_id)
            self._lost += self._leftovers.maybe_outdated
        registration = as_broker(
            node.config,
            node.cluster_id,
            self._incarnation_id,
            node.ports,
            [directory.meta.directory_id for directory in directories if directory.meta],
            epoch,
        )
        node.broker = BrokerLifecycle(
            node.to_controller,
            node.clock,
            registration,
            heartbeat_interval_ms=node.config.get_int("broker.heartbeat.interval.ms"),
            applied_offset=lambda: node.image.offset if self._follows_image else -1,
            failed_directories=node.partitions.failed_directory_ids,
            registered=self._registered,
            unfenced=self._unfenced,
            failed=node.fail,
        )
        node.metadata.when_leader_changes(self._controller_changed)
        node.broker.start()

    def _controller_changed(self) -> None:
        node, broker = self._node, self._node.broker
        if broker is not None and node.to_controller.knows_controller:
            # Not within the change: others that follow it may not know of it yet.
            node.clock.call_soon(broker.controller_changed)

    def _registered(self, broker_epoch: int) -> None:
        """A broker's epoch is the offset of its registration in the metadata log."""
        remember(self._node.partitions.directories(), broker_epoch)
        self._node.metadata.when_applied(broker_epoch, self._registration_applied)

    def _registration_applied(self) -> None:
        node = self._node
        if node.progress.state is not NodeState.REGISTERING:
            return  # It is stopping, or has registered again.
        with self._failing():
            node.progress.enter(NodeState.FENCED)
            assert node.broker is not None, "it has registered"
            lost = LostReplicas(node.to_controller, node.broker, node.node_id, self._lost, clock=node.clock)
            lost.report().when_done(lambda _: self._lost_reported())

    def _lost_reported(self) -> None:
        if self._node.progress.is_stopping:
            return
        with self._failing():
            self._follow_image()
            self._node.partitions.clear_strays()
            self._node.moves.resume()

    def _follow_image(self) -> None:
        """Until now topics could be created and deleted without this node's partitions."""
        node = self._node
        self._follows_image = True
        node.partitions.take_missing_offline(self._image_before_loading)
        node.partitions.take_undecided_offline(self._leftovers.undecided, self._image_before_loading)
        node.partitions.delete_logs_of(self._removed_topics)
        node.metadata.loader.subscribe(node.metadata_changed)
        assert node.broker is not None, "the broker has registered"
        node.directory_assignments = DirectoryAssignments(
            node.node_id, node.partitions, node.to_controller, node.broker, clock=node.clock, random=node.random
        )
        node.metadata.loader.subscribe(node.directory_assignments.apply)
        self._image_before_loading = ClusterImage()
        self._removed_topics.clear()

    # --- FENCED

    def _unfenced(self) -> None:
        if self._node.progress.is_stopping:
            return
        with self._failing():
            self._node.progress.enter(NodeState.SERVING)
            self._node.serve()

    # --- Failures

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """A node that neither serves nor ends is useless, so every exception ends it."""
        try:
            yield
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        if isinstance(error, OSError | DataDirectoryError):
            self._node.fail(f"the node cannot start: {error}")
        else:
            log.error("the node failed while it started", exc_info=error)
            self._node.fail(f"the node cannot start: {error!r}")


def _what_is_missing(metadata_log: MetadataLog) -> str:
    if metadata_log.is_taken_for_leader:
        return "the other controllers say that this node leads them; does another process have its node.id?"
    if metadata_log.leader_id is not None:
        return "this node is behind the active controller, or most of the controllers are down"
    unanswered = islice(metadata_log.unanswered.items(), REASONS_MAX)
    reasons = "; ".join(why if str(address) in why else f"{address}: {why}" for address, why in unanswered)
    ids = ", ".join(map(str, metadata_log.voters.ids))
    if not ids and not reasons:
        return (
            "the controllers answer, and no active one is known; if the cluster is new, format its first controllers "
            "with --initial-controllers, or a single one with --standalone"
        )
    up = f"most of the controllers {ids} must be up" if ids else "are those in controller.quorum.bootstrap.servers up?"
    return f"no active controller is known; {up}" + (f" ({reasons})" if reasons else "")


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
