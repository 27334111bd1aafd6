"""Single requests of the newer group protocol (KIP-848), for tests without a client."""

import uuid
from typing import Any

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from quire.testing import WireConnection
from tests.wire.raw import topic_metadata

JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2
"""Member epochs with a special meaning."""
NEWEST = 1

Owned = dict[str, list[int]]
"""Partitions by topic."""


def beat(
    connection: WireConnection, group: str, member_id: str, epoch: int, *, version: int = NEWEST, **more: Any
) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=epoch, **more)
    return connection.call(request, version, ConsumerGroupHeartbeatResponse)


def owning(connection: WireConnection, owned: Owned) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
    return [
        ConsumerGroupHeartbeatRequestTopicPartitions(
            topic_id=topic_metadata(connection, topic).topic_id, partitions=partitions
        )
        for topic, partitions in owned.items()
    ]


def full(*topics: str, rebalance_timeout_ms: int = 10_000, **more: Any) -> dict[str, Any]:
    """The required fields of a member's first heartbeat."""
    return {
        "rebalance_timeout_ms": rebalance_timeout_ms,
        "subscribed_topic_names": list(topics),
        "topic_partitions": [],
        **more,
    }


class RawConsumer:
    """One member: remembers its id and epoch, and owns the partitions that it reports."""

    def __init__(self, connection: WireConnection, group: str, *topics: str, **more: Any) -> None:
        self.connection = connection
        self.group = group
        self.member_id = str(uuid.uuid4())
        self.epoch = JOINS
        self._join = full(*topics, **more)
        self._names = {topic_metadata(connection, topic).topic_id: topic for topic in topics}

    def join(self) -> Owned | None:
        return self._take(beat(self.connection, self.group, self.member_id, JOINS, **self._join))

    def beat(self, owned: Owned | None = None) -> Owned | None:
        """Sends a heartbeat, with the owned partitions if they are given; returns the new assignment, if there is
        one."""
        said = None if owned is None else owning(self.connection, owned)
        return self._take(beat(self.connection, self.group, self.member_id, self.epoch, topic_partitions=said))

    def leave(self, epoch: int = LEAVES) -> None:
        instance = self._join.get("instance_id")
        answer = beat(self.connection, self.group, self.member_id, epoch, instance_id=instance)
        assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, epoch)

    def _take(self, answer: ConsumerGroupHeartbeatResponse) -> Owned | None:
        assert answer.error_code == ErrorCode.NONE, answer.error_message
        assert answer.member_id == self.member_id
        self.epoch = answer.member_epoch
        if answer.assignment is None:
            return None
        return {self._names[each.topic_id]: sorted(each.partitions) for each in answer.assignment.topic_partitions}


def describe_consumer_group(connection: WireConnection, group: str, version: int = NEWEST) -> DescribedGroup:
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    (found,) = connection.call(request, version, ConsumerGroupDescribeResponse).groups
    return found
