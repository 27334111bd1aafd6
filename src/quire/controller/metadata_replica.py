"""This node's replica of the metadata log: the log, the image built from it, and the image's subscribers.

Every node has one. On the node that leads the quorum it also holds the `ActiveController`, which exists exactly as long
as this node leads: it is created at each election and destroyed when the term ends.

    MetadataLog -- committed batches --> MetadataLoader -- image, delta --> publishers (partitions, coordinators, ...)
                -- leadership ---------> ActiveController -- records ----> MetadataLog
"""

from collections.abc import Callable, Iterable, Sequence

from quire.config.broker_config import BrokerConfig
from quire.controller.active_controller import ActiveController
from quire.controller.bootstrap import read_bootstrap
from quire.controller.log_config import addresses, log_settings, static_voters
from quire.metadata.features import UnsupportedMetadataError, record_version
from quire.metadata.image import ClusterImage
from quire.metadata.loader import MetadataLoader
from quire.metadata.snapshot import image_of, records_of
from quire.pending import Pending
from quire.protocol.schema import Message
from quire.raft.errors import MetadataLogError
from quire.raft.log_store import CommittedBatch
from quire.raft.metadata_log import MetadataLog
from quire.raft.peers import Peers
from quire.raft.replicas import ReplicaKey
from quire.raft.snapshot_file import Snapshot
from quire.raft.snapshot_taker import SnapshotContent
from quire.raft.wire import LeaderEndpoint
from quire.seams import Clock, Connector, Disk, Jobs, Random

HAND_OVER_MS = 200.0
"""How long an active controller that stops waits at most for what it has written to be committed."""


class MetadataReplica:
    """Subscribe to `loader`, then `open`. The log reports to this object as its `LogListener`."""

    def __init__(
        self,
        config: BrokerConfig,
        cluster_id: str,
        directory_id: bytes,
        incarnation_id: bytes,
        *,
        clock: Clock,
        random: Random,
        disk: Disk,
        jobs: Jobs,
        peers: Peers,
        network: Connector,
        failed: Callable[[Exception], None],
    ) -> None:
        """`directory_id` is that of the metadata log's directory. `incarnation_id` tells this process from earlier ones
        of the same node. `failed` is called once, when metadata is lost.

        `network` is for the active controller, which connects to brokers that may be gone.
        """
        self.loader = MetadataLoader()
        self.log = MetadataLog(
            config.metadata_log_dir,
            ReplicaKey(config.node_id, directory_id),
            self,
            clock=clock,
            random=random,
            disk=disk,
            jobs=jobs,
            failed=failed,
            settings=log_settings(config),
            static_voters=static_voters(config),
            cluster_id=cluster_id,
            peers=peers,
            addresses=addresses(config),
        )
        self.active: ActiveController | None = None
        """Set while this node leads the quorum."""
        self._config = config
        self._cluster_id = cluster_id
        self._incarnation_id = incarnation_id
        self._clock = clock
        self._random = random
        self._disk = disk
        self._network = network
        self._bootstrap: Sequence[Message] = ()
        self._when_applied: list[tuple[int, Callable[[], None]]] = []
        self._when_leader_changes: list[Callable[[], None]] = []

    def open(self) -> None:
        """Blocks while files are read; MetadataLogError if they cannot be used. Catching up comes later."""
        self._bootstrap = read_bootstrap(self._disk, self._config.metadata_log_dir)
        self.log.open()

    def hand_over(self) -> Pending[None]:
        """Leaves the lead to another voter before this node stops answering; completes within `HAND_OVER_MS`.

        What is written is committed first, if possible: otherwise its clients would have to retry.
        """
        handed_over: Pending[None] = Pending()
        has_resigned = False

        def resign() -> None:
            nonlocal has_resigned
            if not has_resigned:
                has_resigned = True  # at once: the end of the term completes what waits for a commit
                timer.cancel()
                self.log.resign()
                handed_over.complete(None)

        timer = self._clock.call_later(HAND_OVER_MS, resign)
        if self.active is None:
            resign()
        else:
            self.active.when_written().when_done(lambda _: resign())
        return handed_over

    def close(self) -> None:
        """Ends the term of the active controller, if it is here, and closes the log."""
        self._end_term()
        self.log.close()

    @property
    def image(self) -> ClusterImage:
        """The cluster as committed."""
        return self.loader.image

    def leader_endpoint(self) -> LeaderEndpoint | None:
        """Where the active controller listens; None if that is unknown, or if it is this node."""
        endpoint = self.log.leader_endpoint
        return None if endpoint is None or endpoint.node_id == self._config.node_id else endpoint

    def when_leader_changes(self, callback: Callable[[], None]) -> None:
        """Calls `callback` after each change of the leader, also to none."""
        self._when_leader_changes.append(callback)

    def when_applied(self, offset: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls `callback` when the image has the record at `offset`, now if it has; the result ends the wait."""
        waiting = (offset, callback)

        def forget() -> None:
            if waiting in self._when_applied:
                self._when_applied.remove(waiting)

        if self.image.offset >= offset:
            callback()
        else:
            self._when_applied.append(waiting)
        return forget

    # --- What the log reports

    def prepare_snapshot(self, snapshot: Snapshot) -> Callable[[], None]:
        """Builds the image. Only if it is wanted, it matters whether this node supports everything in it."""
        position = snapshot.position
        last_offset, timestamp_ms = position.offset - 1, snapshot.last_contained_timestamp_ms
        try:
            image = image_of(snapshot.records, last_offset, position.epoch, timestamp_ms)
        except UnsupportedMetadataError as error:
            unsupported = MetadataLogError(str(error))
            return lambda: _raise(unsupported)
        return lambda: self._load(image)

    def _load(self, image: ClusterImage) -> None:
        self.loader.load_snapshot(image)
        self._call_waiting(image.offset)

    def committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Publishes first, then answers: a client that gets a response finds the change done on this node."""
        try:
            self.loader.apply(batches)
        except UnsupportedMetadataError as error:
            raise MetadataLogError(str(error)) from error
        offset = self.loader.image.offset
        if self.active is not None:
            self.active.committed(offset + 1)
        if self._when_applied:
            self._call_waiting(offset)

    def _call_waiting(self, offset: int) -> None:
        reached = [callback for wanted, callback in self._when_applied if wanted <= offset]
        self._when_applied = [waiting for waiting in self._when_applied if waiting[0] > offset]
        for callback in reached:
            callback()

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        self._end_term()
        if leader_id == self._config.node_id:
            self._begin_term(epoch)
        for callback in list(self._when_leader_changes):
            callback()

    def _begin_term(self, epoch: int) -> None:
        self.active = ActiveController(
            self._config,
            self._cluster_id,
            self.log,
            self.loader.image.copy(),
            clock=self._clock,
            random=self._random,
            network=self._network,
            incarnation_id=self._incarnation_id,
        )
        self.active.start(self._bootstrap, epoch, in_transaction=self.loader.in_transaction)

    def snapshot_content(self) -> SnapshotContent | None:
        if self.loader.in_transaction:
            return None
        image = self.loader.image.copy()
        return SnapshotContent(image.offset, image.epoch, image.timestamp_ms, _versioned(image))

    def _end_term(self) -> None:
        active, self.active = self.active, None
        if active is not None:
            active.stop()


def _raise(error: Exception) -> None:
    raise error


def _versioned(image: ClusterImage) -> Iterable[tuple[Message, int]]:
    level = image.metadata_version
    return ((record, record_version(record, level)) for record in records_of(image))
