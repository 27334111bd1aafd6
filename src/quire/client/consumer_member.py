"""A member of a group in the consumer protocol (KIP-848): sends what `GroupMembership` says."""

from collections.abc import Sequence

from quire.client.cluster import Cluster
from quire.client.coordinators import ASK_AGAIN, CoordinatorType, ask_coordinator
from quire.client.group_membership import GroupMembership, TopicIdPartition
from quire.client.group_offsets import Committer
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from quire.protocol.uuids import to_text
from quire.steps import Steps

OWN_MEMBER_ID = (1, 1)
"""The version of ConsumerGroupHeartbeat in which members choose their own ids (KIP-1082)."""


class ConsumerMember:
    def __init__(self, cluster: Cluster, group_id: str, topics: Sequence[str], rebalance_timeout_ms: int) -> None:
        self._cluster = cluster
        self._topics = list(topics)
        self._membership = GroupMembership(group_id, to_text(cluster.random.uuid()), topics, rebalance_timeout_ms)
        self._assigned: list[TopicIdPartition] = []
        self._has_asked = False

    @property
    def interval_ms(self) -> float:
        return self._membership.interval_ms

    @property
    def committer(self) -> Committer | None:
        membership = self._membership
        return Committer(membership.member_id, membership.epoch) if membership.epoch > 0 else None

    def exchange(self) -> Steps[list[TopicPartition] | None]:
        self._has_asked = True
        response = yield from self._say(self._membership.heartbeat())
        assigned = self._membership.answered(response)
        if assigned is None:
            return None
        self._assigned = assigned
        return (yield from self._named(assigned))

    def reads(self) -> None:
        self._membership.reads(self._assigned)  # the next heartbeat, sent at once, reports it

    def leave(self) -> Steps[None]:
        if self._has_asked:  # it may be a member even if it has not got the response yet
            yield from self._say(self._membership.leave_request())

    def _say(self, request: ConsumerGroupHeartbeatRequest) -> Steps[ConsumerGroupHeartbeatResponse]:
        return (
            yield from ask_coordinator(
                self._cluster,
                CoordinatorType.GROUP,
                self._membership.group_id,
                request,
                ConsumerGroupHeartbeatResponse,
                lambda answer: ErrorCode(answer.error_code) if answer.error_code in ASK_AGAIN else ErrorCode.NONE,
                versions=OWN_MEMBER_ID,
            )
        )

    def _named(self, assigned: Sequence[TopicIdPartition]) -> Steps[list[TopicPartition]]:
        """The partitions by name, without those of deleted topics."""
        names = self._cluster.metadata.names_by_id
        if any(topic_id not in names for topic_id, _ in assigned):
            yield from self._cluster.refresh(self._topics)
        return [TopicPartition(names[topic_id], partition) for topic_id, partition in assigned if topic_id in names]
