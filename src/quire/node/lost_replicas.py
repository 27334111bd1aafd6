"""Reports replicas that a broker does not have any more, before it is unfenced (AssignReplicasToDirs, KIP-858).

Their folders are missing in directories that are otherwise as they were (`quire.node.previous_registration`). They are
assigned to the directory that stands for a loss, so they leave the ISR and the eligible replicas of their partitions.
The broker's other replicas stay there. Later each gets an empty log, and its directory is reported like that of a new
one.
"""

from collections.abc import Sequence

from quire.metadata.partition_image import LOST_DIRECTORY
from quire.node.assignment_request import MOST_REPLICAS, assignment_request
from quire.node.broker_lifecycle import RETRY_MS, BrokerLifecycle
from quire.node.partitions.hosted import PartitionId
from quire.node.to_controller import ToController
from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsResponse
from quire.seams import Clock


class LostReplicas:
    def __init__(
        self,
        to_controller: ToController,
        broker: BrokerLifecycle,
        node_id: int,
        lost: Sequence[PartitionId],
        *,
        clock: Clock,
    ) -> None:
        self._to_controller = to_controller
        self._broker = broker
        self._node_id = node_id
        self._clock = clock
        self._left = list(lost)
        self._all_sent: Pending[None] = Pending()

    def report(self) -> Pending[None]:
        """Completed when the controller knows of all of them."""
        self._send()
        return self._all_sent

    def _send(self) -> None:
        if self._broker.has_ended:
            return
        if not self._left:
            self._all_sent.complete(None)
            return
        sent = self._left[:MOST_REPLICAS]
        topics: dict[bytes, list[int]] = {}
        for topic_id, index in sent:
            topics.setdefault(topic_id, []).append(index)
        request = assignment_request(self._node_id, self._broker.epoch, {LOST_DIRECTORY: topics})
        self._to_controller.assign_replicas_to_dirs(request).when_done(
            lambda response: self._answered(response, len(sent))
        )

    def _answered(self, response: AssignReplicasToDirsResponse, sent: int) -> None:
        """A replica may be refused because its topic is deleted; then it needs no report."""
        if response.error_code == ErrorCode.NONE:
            del self._left[:sent]
            self._send()
        else:
            self._clock.call_later(RETRY_MS, self._send)
