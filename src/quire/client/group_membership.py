"""One member of a group in the consumer protocol (KIP-848): the contents of its heartbeats and of the responses.

The coordinator assigns the partitions. A member joins with epoch 0; every response carries its epoch from then on, and
its assignment. The member revokes the partitions that are no longer in the assignment and reports what it still owns
with the next heartbeat; then it gets the partitions that others have revoked. A member that sends no heartbeat for too
long is fenced: its partitions belong to others, and it has to join again. Every heartbeat contains the full state, so a
lost heartbeat or response needs no repair.

    joining (epoch 0) ──▶ member (epoch > 0) ──▶ left (epoch -1)
           ▲                    │
           └──── fenced ◀───────┘

Nothing here sends anything; `ConsumerMember` does.
"""

from collections.abc import Iterable, Sequence

from quire.client.group_member import FENCED, FencedError
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)

JOINING = 0
LEAVING = -1

TopicIdPartition = tuple[bytes, int]


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

    def leave_request(self) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=LEAVING, topic_partitions=[]
        )

    def answered(self, response: ConsumerGroupHeartbeatResponse) -> list[TopicIdPartition] | None:
        """The new assignment; None if it has not changed. Raises `FencedError`, or the error of the response."""
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
        """Sets the partitions that the member owns now, which the next heartbeat reports."""
        self.owned = list(owned)
