"""Reports to the controller in which data directory each replica of this broker is (AssignReplicasToDirs, KIP-858).

The broker chooses the directory of a new replica if it has several, so the image begins without one. It can also differ
from what the image says if an operator has moved a log. What was reported is in the image when the controller has
written it; a report that is refused or lost is sent again.
"""

import logging

from quire.client.backoff import Backoff
from quire.metadata.delta import ImageDelta
from quire.metadata.features import has_directories
from quire.metadata.image import ClusterImage
from quire.node.assignment_request import MOST_REPLICAS, assignment_request
from quire.node.broker_lifecycle import BrokerLifecycle
from quire.node.partitions import Partitions
from quire.node.partitions.hosted import PartitionId
from quire.node.to_controller import ToController
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsResponse
from quire.seams import Clock, Random, Timer

log = logging.getLogger("quire.partitions")

DELAY_MS = 10.0
"""Replicas that are created together are reported together."""


class DirectoryAssignments:
    __slots__ = (
        "_backoff",
        "_broker",
        "_clock",
        "_image",
        "_is_sending",
        "_node_id",
        "_partitions",
        "_timer",
        "_to_controller",
        "_wanted",
    )

    def __init__(
        self,
        node_id: int,
        partitions: Partitions,
        to_controller: ToController,
        broker: BrokerLifecycle,
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        self._to_controller = to_controller
        self._node_id = node_id
        self._partitions = partitions
        self._broker = broker
        self._clock = clock
        self._backoff = Backoff(random)
        self._image = ClusterImage()
        self._wanted: dict[PartitionId, None] = {}
        """Replicas whose directory in the image may not be theirs."""
        self._is_sending = False
        self._timer: Timer | None = None

    def apply(self, image: ClusterImage, delta: ImageDelta) -> None:
        """Called after the node has opened and closed its partitions."""
        self._image = image
        if not has_directories(image.metadata_version):
            return
        for topic_id, indexes in delta.partitions.items():
            for index in indexes:
                if self._may_differ((topic_id, index)):
                    self._wanted[topic_id, index] = None
        if self._wanted and self._timer is None and not self._is_sending:
            self._send_later(DELAY_MS)

    def reconsider(self, key: PartitionId) -> None:
        """The log of this replica is about to move to another directory, or will not."""
        if self._may_differ(key):
            self._wanted[key] = None
            if self._timer is None and not self._is_sending:
                self._send_later(DELAY_MS)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._is_sending = True

    def _may_differ(self, key: PartitionId) -> bool:
        known = self._in_image(key)
        if known is None:
            return False
        actual = self._partitions.directory_id_of(*key)
        if actual is not None:
            return known != actual
        # A log that is not open yet will be in one of the directories; one that is offline stays where it is.
        return not self._partitions.is_offline(*key) and known not in self._partitions.directory_ids()

    def _in_image(self, key: PartitionId) -> bytes | None:
        """None if this broker has no replica of the partition."""
        partition = self._image.partition(*key)
        if partition is None or self._node_id not in partition.replicas:
            return None
        return partition.directories[partition.replicas.index(self._node_id)]

    def _send_later(self, delay_ms: float) -> None:
        self._timer = self._clock.call_later(delay_ms, self._send)

    def _send(self) -> None:
        self._timer = None
        self._wanted = {key: None for key in self._wanted if self._may_differ(key)}
        by_directory: dict[bytes, dict[bytes, list[int]]] = {}
        sent: list[PartitionId] = []
        for key in list(self._wanted)[:MOST_REPLICAS]:
            directory = self._partitions.directory_id_of(*key)
            if directory is not None:
                by_directory.setdefault(directory, {}).setdefault(key[0], []).append(key[1])
                sent.append(key)
        if sent:
            self._is_sending = True
            request = assignment_request(self._node_id, self._broker.epoch, by_directory)
            self._to_controller.assign_replicas_to_dirs(request).when_done(
                lambda response: self._answered(response, sent)
            )
        elif self._wanted:
            self._send_later(self._backoff.next_ms())  # Their logs are not created yet.

    def _answered(self, response: AssignReplicasToDirsResponse, sent: list[PartitionId]) -> None:
        self._is_sending = False
        if response.error_code != ErrorCode.NONE:
            log.debug("directories of replicas not assigned error=%s", ErrorCode(response.error_code).name)
            self._send_later(self._backoff.next_ms())
            return
        self._backoff.reset()
        for key in sent:
            self._wanted.pop(key, None)
        if self._wanted:
            self._send_later(DELAY_MS)
