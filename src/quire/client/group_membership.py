"""One member of a group in the consumer protocol (KIP-848): what its heartbeats say, and what the answers mean.

The coordinator decides who reads what. A member joins with epoch 0, and every answer carries its epoch from then on and
the partitions it is to read. It gives up what is no longer among them, says with the next heartbeat what it still has,
and gets what others have given up. A member that was silent for too long is fenced: what it reads is somebody else's,
and it joins again. Every heartbeat says everything, so that one that was lost, or its answer, leaves nothing to repair.

    joining (epoch 0) ──▶ member (epoch > 0) ──▶ left (epoch -1)
           ▲                    │
           └──── fenced ◀───────┘

Nothing here sends anything; `GroupConsumer` does.
"""

from collections.abc import Iterable, Sequence

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)

JOINING = 0
LEAVING = -1

FENCED = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)

TopicIdPartition = tuple[bytes, int]


class FencedError(Exception):
    """The coordinator has given this member's partitions to others; it may join again, with nothing."""


class GroupMembership:
    __slots__ = ("_rebalance_timeout_ms", "_topics", "epoch", "group_id", "interval_ms", "member_id", "owned")

    def __init__(self, group_id: str, member_id: str, topics: Sequence[str], rebalance_timeout_ms: int) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.epoch = JOINING
        self.interval_ms = 0
        self.owned: list[TopicIdPartition] = []
        self._topics = list(topics)
        self._rebalance_timeout_ms = rebalance_timeout_ms

    def heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, partition in self.owned:
            by_topic.setdefault(topic_id, []).append(partition)
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            subscribed_topic_names=self._topics,
            topic_partitions=[
                ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in by_topic.items()
            ],
        )

    def goodbye(self) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=LEAVING, topic_partitions=[]
        )

    def answered(self, response: ConsumerGroupHeartbeatResponse) -> list[TopicIdPartition] | None:
        """What it is to read from now on; None for what it reads already. Raises `FencedError`, or what is wrong."""
        code = ErrorCode(response.error_code)
        if code in FENCED:
            self.epoch, self.owned = JOINING, []
            raise FencedError
        if code:
            raise ApiError(code, response.error_message or f"group {self.group_id} cannot be joined ({code.name})")
        self.epoch = response.member_epoch
        self.interval_ms = response.heartbeat_interval_ms
        if response.assignment is None:
            return None
        assigned = [
            (topic.topic_id, partition)
            for topic in response.assignment.topic_partitions
            for partition in topic.partitions
        ]
        return None if sorted(assigned) == sorted(self.owned) else assigned

    def reads(self, owned: Iterable[TopicIdPartition]) -> None:
        """What it reads now, which the next heartbeat says."""
        self.owned = list(owned)
