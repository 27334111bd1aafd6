"""The description of a group by its coordinator, in one form for both protocols.

In the classic protocol the members divide the partitions among themselves, and the coordinator only passes bytes on;
those of consumers are decoded here. In the consumer protocol (KIP-848) the coordinator decides. Epochs and targets,
which only the consumer protocol has, are None in the classic protocol. `admin.groups` sends the requests.
"""

from dataclasses import dataclass, field
from typing import TypeVar

from quire.client.admin.results import error
from quire.client.offsets import TopicPartition
from quire.protocol.codec import decoder
from quire.protocol.errors import ApiError, ErrorCode, ProtocolError
from quire.protocol.messages import consumer_group_describe as new
from quire.protocol.messages import describe_groups as classic
from quire.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from quire.protocol.schema import Message

M = TypeVar("M", bound=Message)

CLASSIC = "classic"
CONSUMER = "consumer"
EMPTY = "Empty"
DEAD = "Dead"


@dataclass(slots=True, frozen=True)
class Member:
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    subscription: list[str]
    assignment: list[TopicPartition]
    pattern: str | None = None
    target: list[TopicPartition] | None = None
    epoch: int | None = None


@dataclass(slots=True, frozen=True)
class Group:
    group_id: str
    protocol: str
    protocol_type: str
    state: str
    assignor: str
    coordinator: int
    members: list[Member] = field(default_factory=list)
    epoch: int | None = None
    target_epoch: int | None = None

    @property
    def in_use(self) -> bool:
        """Whether it has members, so that only they may commit offsets."""
        return self.state not in (EMPTY, DEAD)


def consumer_group(answer: new.DescribedGroup, coordinator: int) -> Group | ApiError:
    failed = error(answer.error_code, answer.error_message, f"group {answer.group_id} cannot be described")
    return failed or Group(
        answer.group_id,
        CONSUMER,
        CONSUMER,
        answer.group_state,
        answer.assignor_name,
        coordinator,
        [
            Member(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                sorted(member.subscribed_topic_names),
                _topic_partitions(member.assignment),
                member.subscribed_topic_regex or None,
                _topic_partitions(member.target_assignment),
                member.member_epoch,
            )
            for member in sorted(answer.members, key=lambda member: (member.client_id, member.member_id))
        ],
        answer.group_epoch,
        answer.assignment_epoch,
    )


def _topic_partitions(assignment: new.Assignment) -> list[TopicPartition]:
    return sorted(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def classic_group(answer: classic.DescribedGroup, coordinator: int) -> Group | ApiError:
    absent = answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND or (not answer.error_code and answer.group_state == DEAD)
    if absent:  # before version 6, an unknown group is described as dead
        return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {answer.group_id} does not exist")
    failed = error(answer.error_code, answer.error_message, f"group {answer.group_id} cannot be described")
    return failed or Group(
        answer.group_id,
        CLASSIC,
        answer.protocol_type,
        answer.group_state,
        answer.protocol_data,
        coordinator,
        [
            _classic_member(member, answer.protocol_type)
            for member in sorted(answer.members, key=lambda member: (member.client_id, member.member_id))
        ],
    )


def _classic_member(member: classic.DescribedGroupMember, protocol_type: str) -> Member:
    subscription = assignment = None
    if protocol_type == CONSUMER:  # other types have formats of their own
        subscription = _decode(ConsumerProtocolSubscription, member.member_metadata)
        assignment = _decode(ConsumerProtocolAssignment, member.member_assignment)
    return Member(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        [] if subscription is None else sorted(subscription.topics),
        []
        if assignment is None
        else sorted(
            TopicPartition(topic.topic, partition)
            for topic in assignment.assigned_partitions
            for partition in topic.partitions
        ),
    )


def _decode(kind: type[M], data: bytes) -> M | None:
    """Decodes what a member sent, which begins with a version; None if it is empty or has another format.

    Newer versions only add fields at the end, so the known part of a newer version can be read.
    """
    if len(data) < 2:
        return None
    version = min(int.from_bytes(data[:2], "big"), kind.VERSIONS[1])
    try:
        return decoder(kind, version)(data, 2)[0]
    except ProtocolError:
        return None
