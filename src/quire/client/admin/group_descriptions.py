"""A group as its coordinator describes it, in either protocol, made alike.

In the classic protocol the members divide the partitions among themselves and the coordinator only passes bytes on,
which are read here where they are a consumer's; in the consumer protocol (KIP-848) the coordinator decides. What only
the second has, epochs and targets, is None in the first. `admin.groups` asks.
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
        """Whether members keep its offsets, so that nobody else may."""
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
                _places(member.assignment),
                member.subscribed_topic_regex or None,
                _places(member.target_assignment),
                member.member_epoch,
            )
            for member in sorted(answer.members, key=lambda member: (member.client_id, member.member_id))
        ],
        answer.group_epoch,
        answer.assignment_epoch,
    )


def _places(assignment: new.Assignment) -> list[TopicPartition]:
    return sorted(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def classic_group(answer: classic.DescribedGroup, coordinator: int) -> Group | ApiError:
    absent = answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND or (not answer.error_code and answer.group_state == DEAD)
    if absent:  # brokers from before version 6 call a group that they do not know dead
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
    if protocol_type == CONSUMER:  # what others pass around only they can read
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
    """What a member wrote, version first; None where it wrote nothing, or something that is not of this kind.

    Versions only ever add fields at the end, so of a newer one than we know the front is read.
    """
    if len(data) < 2:
        return None
    version = min(int.from_bytes(data[:2], "big"), kind.VERSIONS[1])
    try:
        return decoder(kind, version)(data, 2)[0]
    except ProtocolError:
        return None
