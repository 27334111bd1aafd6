"""A shard with consumer groups, and the topics that they read."""

from collections.abc import Mapping

from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.group import Groups
from quire.coordinators.group.machine import GroupMachine
from quire.coordinators.runtime.machine import Caller
from quire.metadata.image import ClusterImage, PartitionImage, TopicImage
from quire.protocol.errors import ApiError
from quire.protocol.messages.consumer_group_describe import DescribedGroup
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from simulator.clock import SimClock
from tests.coordinators.sim_shard import SimShard

GROUP = "readers"


class ConsumerShard(SimShard[GroupMachine]):
    def __init__(self, settings: Mapping[str, str] | None = None, *, clock: SimClock | None = None) -> None:
        super().__init__(GroupMachine, settings, clock=clock)

    # --- Topics

    def put_topic(self, name: str, partitions: int) -> None:
        """Creates a topic or adds partitions to it."""
        image = self.image.copy()
        known = image.topic(name)
        if known is None:
            known = TopicImage(name, topic_id(name, image.offset))
            image.add_topic(known)
        for number in range(len(known.partitions), partitions):
            known.partitions[number] = PartitionImage((1,), (1,), 1)
        self._next_image(image)

    def delete_topic(self, name: str) -> None:
        image = self.image.copy()
        image.remove_topic(image.topics_by_name[name])
        self._next_image(image)

    def _next_image(self, image: ClusterImage) -> None:
        image.offset += 1
        self.change_image(image)

    # --- Requests

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, *, version: int = 1, host: str = "/127.0.0.1"
    ) -> ConsumerGroupHeartbeatResponse | ApiError:
        caller = Caller("client", host, version)
        answer = self.run(lambda now_ms: self.machine.consumer_group_heartbeat(request, caller, now_ms))
        return answer.value

    @property
    def groups(self) -> Groups:
        return self.machine._groups

    @property
    def group(self) -> ConsumerGroup:
        group = self.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    def describe(self) -> DescribedGroup:
        return self.machine._consumer.describe(self.group)


def topic_id(name: str, creation: int = 0) -> bytes:
    """The id contains the name; a topic that is created again has another id."""
    return name.encode()[:14].ljust(14, b"\0") + (creation & 0xFFFF).to_bytes(2)


def join(member_id: str, *topics: str, **fields: object) -> ConsumerGroupHeartbeatRequest:
    """The first request of a member."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=list(topics),
        topic_partitions=[],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def beat(
    member_id: str, epoch: int, owned: Mapping[bytes, set[int]] | None = None, **fields: object
) -> ConsumerGroupHeartbeatRequest:
    """A later request, with the partitions that the member owns or without them."""
    request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=epoch)
    if owned is not None:
        request.topic_partitions = [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic, partitions=sorted(partitions))
            for topic, partitions in sorted(owned.items())
        ]
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def assigned(response: ConsumerGroupHeartbeatResponse) -> dict[bytes, set[int]] | None:
    if response.assignment is None:
        return None
    return {each.topic_id: set(each.partitions) for each in response.assignment.topic_partitions}
