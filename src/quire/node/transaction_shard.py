"""The shard of one partition of `__transaction_state`, in which its machine runs operations of its own."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from quire.coordinators.runtime.machine import MachineEnvironment, Timers
from quire.coordinators.runtime.shard import Shard, ShardState
from quire.coordinators.runtime.state_log import StateLog
from quire.coordinators.transaction.machine import TransactionMachine
from quire.coordinators.transaction.marker_sender import MarkerSender
from quire.coordinators.transaction.transactions import Markers
from quire.metadata.image import ClusterImage
from quire.node.producer_ids import NO_ID
from quire.pending import Pending

if TYPE_CHECKING:
    from quire.node.node import Node


UP_TO_DATE_MS = 10_000
"""How long one attempt to bring the image up to date may take."""


class OwnTransactionShard:
    """Implements `TransactionShard` for the machine of `shard`."""

    __slots__ = ("_leader_epoch", "_make_surroundings", "_node", "shard")

    def __init__(
        self,
        node: "Node",
        name: str,
        leader_epoch: int,
        state_log: StateLog,
        make_environment: Callable[[Timers], MachineEnvironment],
        max_batch_bytes: Callable[[], int],
    ) -> None:
        self._node = node
        self._leader_epoch = leader_epoch
        self._make_surroundings = make_environment
        self.shard = Shard(
            name,
            leader_epoch,
            state_log,
            self._make_machine,
            node.clock,
            max_batch_bytes=max_batch_bytes,
            write_timeout_ms=node.config.get_int("offsets.commit.timeout.ms"),
        )

    def _make_machine(self, timers: Timers) -> TransactionMachine:
        sender = MarkerSender(self._node.channel, self._node.clock, self._leader_epoch, self)
        return TransactionMachine(self._make_surroundings(timers), sender, self)

    @property
    def image(self) -> ClusterImage:
        return self._node.metadata.image

    def when_up_to_date(self) -> Pending[bool]:
        return self._node.to_controller.when_up_to_date(UP_TO_DATE_MS)

    def markers_written(self, markers: Markers) -> None:
        if self.shard.state is ShardState.ACTIVE:
            self.shard.run(lambda machine, now_ms: machine.markers_written(markers, now_ms))

    def abort_with_new_producer_id(self, transactional_id: str) -> None:
        self._node.producer_ids.next_id().when_done(
            lambda producer_id: self._abort_timed_out(transactional_id, producer_id)
        )

    def _abort_timed_out(self, transactional_id: str, producer_id: int) -> None:
        if producer_id != NO_ID and self.shard.state is ShardState.ACTIVE:
            self.shard.run(lambda machine, now_ms: machine.abort_timed_out(transactional_id, now_ms, producer_id))
