"""Asks the controller for the changes of ISRs that leaders on this node want (AlterPartition).

One request at a time has all changes that are wanted by then. A change that the controller did not decide, because
there was none or the answer was lost, is sent again for as long as its leader wants it. The leader counts the larger
set until the metadata brings the decision, and if a request had no answer, even after the refusal of a later one: the
earlier one may be delayed, and find the member eligible again. An answer may come before the metadata that it is based
on: a leader that took the smaller ISR from it could still have a lower min.insync.replicas than that ISR was decided
with.
"""

import logging
from typing import TYPE_CHECKING

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from quire.replication.in_sync_replicas import IsrChange
from quire.replication.leader_role import LeaderRole

if TYPE_CHECKING:
    from quire.node.node import Node

log = logging.getLogger("quire.replicas")

RETRY_MS = 50.0
MOST_CHANGES = 2_000
"""Of one request."""

_REFUSED = (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED)
"""This request changed nothing, and will change nothing."""
_OVERTAKEN = (
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.NEW_LEADER_ELECTED,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
"""The state of the partition is another one, which the metadata will bring. After other errors it is sent again."""

_DECIDED = (ErrorCode.NONE, *_REFUSED, *_OVERTAKEN)
_NOT_DONE = (ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH)
"""The request will not be carried out later. After other errors it may be on its way to the controller, or in its
queue. What a controller wrote before it lost its lead is in the log of the next one, or nowhere."""

Key = tuple[bytes, int]


class IsrChanges:
    __slots__ = ("_closed", "_is_sending", "_node", "_scheduled", "_wanted")

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._wanted: dict[LeaderRole, None] = {}
        self._is_sending = False
        self._scheduled = False
        self._closed = False

    def wanted(self, leader: LeaderRole) -> None:
        self._wanted[leader] = None
        self._send_soon()

    def close(self) -> None:
        self._closed = True

    def _send_soon(self, after_ms: float = 0.0) -> None:
        if not self._scheduled and not self._is_sending and not self._closed:
            self._scheduled = True
            self._node.clock.call_later(after_ms, self._send)

    def _send(self) -> None:
        self._scheduled = False
        sent: dict[Key, tuple[LeaderRole, IsrChange]] = {}
        for leader in list(self._wanted)[:MOST_CHANGES]:
            del self._wanted[leader]
            change = leader.followers.change
            if change is not None:
                sent[leader.partition.topic_id, leader.partition.index] = leader, change
        if not sent or self._closed:
            if self._wanted:
                self._send_soon()  # Those were overtaken, and there are more.
            return
        self._is_sending = True
        self._node.to_controller.alter_partition(self._request(sent)).when_done(
            lambda response: self._answered(sent, response)
        )

    def _request(self, sent: dict[Key, tuple[LeaderRole, IsrChange]]) -> AlterPartitionRequest:
        broker = self._node.broker
        assert broker is not None, "a leader's broker has registered"
        topics: dict[bytes, AlterPartitionRequestTopicData] = {}
        for (topic_id, index), (_, change) in sent.items():
            topic = topics.setdefault(topic_id, AlterPartitionRequestTopicData(topic_id=topic_id))
            topic.partitions.append(
                AlterPartitionRequestPartitionData(
                    partition_index=index,
                    leader_epoch=change.leader_epoch,
                    new_isr_with_epochs=self._members(change, broker.epoch),
                    partition_epoch=change.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._node.node_id, broker_epoch=broker.epoch, topics=list(topics.values())
        )

    def _members(self, change: IsrChange, own_epoch: int) -> list[BrokerState]:
        epochs = dict(zip(change.isr, change.broker_epochs, strict=True))
        epochs[self._node.node_id] = own_epoch
        return [BrokerState(broker_id=each, broker_epoch=epochs[each]) for each in change.isr]

    def _answered(self, sent: dict[Key, tuple[LeaderRole, IsrChange]], response: AlterPartitionResponse) -> None:
        self._is_sending = False
        if self._closed:
            return
        answers = {
            (topic.topic_id, each.partition_index): each for topic in response.topics for each in topic.partitions
        }
        retry = False
        for key, (leader, change) in sent.items():
            answer = answers.get(key)
            if response.error_code or answer is None or answer.error_code not in _DECIDED:
                is_decided = False
                if (response.error_code or (-1 if answer is None else answer.error_code)) not in _NOT_DONE:
                    leader.followers.unanswered(change)
            else:
                is_decided = self._decided(leader, change, answer)
            if not is_decided:
                self._wanted[leader] = None
                retry = True
        if self._wanted:
            self._send_soon(RETRY_MS if retry else 0.0)

    def _decided(self, leader: LeaderRole, change: IsrChange, answer: AlterPartitionResponsePartitionData) -> bool:
        """Whether the change need not be sent again."""
        code = ErrorCode(answer.error_code)
        if not leader.is_active:
            return True
        if code is ErrorCode.NONE:
            log.info("isr changed partition=%s isr=%s epoch=%d", leader.partition, answer.isr, answer.partition_epoch)
            if answer.partition_epoch == change.partition_epoch:
                leader.followers.withdraw(change)  # It was the committed state already, and nothing was written.
            return True
        log.info("isr not changed partition=%s wanted=%s error=%s", leader.partition, list(change.isr), code.name)
        return code not in _REFUSED or leader.followers.refused(change)
