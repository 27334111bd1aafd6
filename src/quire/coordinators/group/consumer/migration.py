"""Converts a group from one protocol to the other while its members work (group.consumer.migration.policy).

Upgrade: a classic group becomes a consumer group when a member joins it with a ConsumerGroupHeartbeat. Its members keep
their partitions and continue to use the classic protocol (`classic_members`). Downgrade: a consumer group becomes a
classic one when its last member of the consumer protocol leaves and others remain. In both cases the log gets the
tombstones of the old group, then the records of the new one. The generation continues as group epoch and back.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.group_record import group_record
from quire.coordinators.group.classic.member import Member as ClassicMember
from quire.coordinators.group.classic.state import ClassicState
from quire.coordinators.group.consumer import embedded_protocol, records
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.consumer_result_builder import ConsumerResultBuilder
from quire.coordinators.group.consumer.member import (
    CurrentAssignment,
    Held,
    Member,
    MemberState,
    Subscription,
    to_assignment,
)
from quire.coordinators.group.consumer.settings import ConsumerSettings
from quire.coordinators.runtime.record import StateRecord
from quire.metadata.image import ClusterImage
from quire.protocol.errors import ApiError, ErrorCode, ProtocolError
from quire.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from quire.protocol.messages.group_records import ClassicMemberMetadata, ClassicProtocol


def upgraded(group: ClassicGroup, settings: ConsumerSettings, image: ClusterImage) -> ConsumerResultBuilder:
    """The consumer group that the classic one becomes. GROUP_ID_NOT_FOUND if it cannot be upgraded."""
    _check_upgrade(group, settings)
    builder = ConsumerResultBuilder(ConsumerGroup(group.group_id))
    builder.write_conversion(*group.tombstones())
    decoded = [_decode(group, member) for member in group.members.values()]
    held = _held(decoded, image)
    members = [_to_consumer(group, each, held[each.member.member_id]) for each in decoded]
    epoch = group.generation
    builder.write(*(records.member_metadata(group.group_id, each.member_id, each.subscription) for each in members))
    builder.write(records.group_metadata(group.group_id, epoch, 0))
    for each in members:
        target = to_assignment(each.current.assigned)
        builder.write(records.target_assignment(group.group_id, each.member_id, target))
    builder.write(records.target_metadata(group.group_id, epoch, 0))
    builder.write(*(records.current_assignment(group.group_id, each.member_id, each.current) for each in members))
    return builder


def _check_upgrade(group: ClassicGroup, settings: ConsumerSettings) -> None:
    if not settings.may_upgrade:
        raise _cannot_upgrade(group, "online upgrade is disabled")
    if group.protocol_type != embedded_protocol.PROTOCOL_TYPE:
        raise _cannot_upgrade(group, "the group does not use the consumer embedded protocol")
    if len(group.members) > settings.most_members:
        raise _cannot_upgrade(group, "the group size exceeds the consumer group maximum size")


def _cannot_upgrade(group: ClassicGroup, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}.",
    )


class _DecodedMember(NamedTuple):
    """A member of a classic group with its decoded subscription and assignment."""

    member: ClassicMember
    subscription: ConsumerProtocolSubscription
    assignment: ConsumerProtocolAssignment


def _decode(group: ClassicGroup, member: ClassicMember) -> _DecodedMember:
    try:
        subscription = embedded_protocol.read_subscription(next(iter(member.protocols.values()), b""))
        assignment = embedded_protocol.read_assignment(member.assignment)
    except ProtocolError:
        raise _cannot_upgrade(group, "the embedded consumer protocol is malformed") from None
    if assignment.user_data:
        raise _cannot_upgrade(
            group, "a custom assignor is in use, whose data would be lost: choose a default one first"
        )
    return _DecodedMember(member, subscription, assignment)


def _held(members: list[_DecodedMember], image: ClusterImage) -> dict[str, dict[bytes, set[int]]]:
    """The partitions of each member, by member id. No partition has two owners, whatever the clients' assignor did.

    A cooperative member keeps the partitions that it owned when it joined until it gets its assignment, and revokes the
    others only then. If the group was rebalancing, that may happen only after the member joins again. If several
    members claim a partition, the claim of the latest generation counts.
    """
    held: dict[str, dict[bytes, set[int]]] = {each.member.member_id: {} for each in members}
    taken: set[tuple[bytes, int]] = set()

    def take(member_id: str, topic_id: bytes, partitions: Iterable[int]) -> None:
        free = [partition for partition in partitions if (topic_id, partition) not in taken]
        if free:
            held[member_id].setdefault(topic_id, set()).update(free)
            taken.update((topic_id, partition) for partition in free)

    for each in members:
        for topic_id, partitions in embedded_protocol.assigned_to(each.assignment, image).items():
            take(each.member.member_id, topic_id, partitions)
    for each in sorted(members, key=lambda each: -each.subscription.generation_id):
        for topic_id, owned in embedded_protocol.owned_by(each.subscription, image):
            take(each.member.member_id, topic_id, owned)
    return held


def _to_consumer(group: ClassicGroup, decoded: _DecodedMember, partitions: Mapping[bytes, set[int]]) -> Member:
    member, said = decoded.member, decoded.subscription
    held = {topic_id: dict.fromkeys(sorted(numbers), group.generation) for topic_id, numbers in partitions.items()}
    return Member(
        member.member_id,
        Subscription(
            client_id=member.client_id,
            client_host=member.client_host,
            topic_names=tuple(sorted(set(said.topics))),
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            instance_id=member.instance_id,
            rack_id=said.rack_id or None,
            classic=classic_metadata(member.session_timeout_ms, member.protocols.items()),
        ),
        CurrentAssignment(group.generation, group.generation, MemberState.STABLE, held),
    )


def classic_metadata(session_timeout_ms: int, protocols: Iterable[tuple[str, bytes]]) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        session_timeout_ms=session_timeout_ms,
        supported_protocols=[ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols],
    )


def can_downgrade(remaining: list[Member], settings: ConsumerSettings) -> bool:
    """Whether the remaining members can be a classic group."""
    return (
        bool(remaining)
        and all(member.is_classic for member in remaining)
        and settings.may_downgrade
        and len(remaining) <= settings.most_classic_members
        and bool(_common_protocols(remaining))
    )


def downgrade_records(
    consumer_group: ConsumerGroup, remaining: list[Member], image: ClusterImage, now_ms: int, *, rebalances: bool
) -> list[StateRecord]:
    """Replaces the consumer group by a classic one with the remaining members and their partitions.

    To make it rebalance, the record has no leader. Every coordinator that loads it starts a rebalance. It also
    rebalances if a member was told another protocol, its own preferred one, than the remaining members vote for.
    """
    group = ClassicGroup(consumer_group.group_id, lambda member: None)
    for member in remaining:
        group.add(_to_classic(member, image), embedded_protocol.PROTOCOL_TYPE)
    group.generation = consumer_group.group_epoch
    group.protocol_name = group.preferred_protocol()
    group.state = ClassicState.STABLE
    group.state_since_ms = now_ms
    if rebalances or any(told_protocol(member) != group.protocol_name for member in remaining):
        group.leader_id = None
    return [*consumer_group.tombstones(), group_record(group)]


def _to_classic(member: Member, image: ClusterImage) -> ClassicMember:
    said = member.subscription
    assert said.classic is not None, f"{member.member_id} does not speak the classic protocol"
    return ClassicMember(
        member.member_id,
        instance_id=said.instance_id,
        client_id=said.client_id,
        client_host=said.client_host,
        session_timeout_ms=said.classic.session_timeout_ms,
        rebalance_timeout_ms=said.rebalance_timeout_ms,
        protocols={protocol.name: protocol.metadata for protocol in said.classic.supported_protocols},
        assignment=classic_assignment(said.classic, member.current.assigned, image),
    )


def told_protocol(member: Member) -> str:
    """The protocol in the responses to a classic member of a consumer group: members need not agree on one."""
    assert member.subscription.classic is not None
    return member.subscription.classic.supported_protocols[0].name


def classic_assignment(classic: ClassicMemberMetadata, held: Held, image: ClusterImage) -> bytes:
    version = embedded_protocol.version_of(classic.supported_protocols[0].metadata)
    return embedded_protocol.write_assignment(to_assignment(held), version, image)


def _common_protocols(members: list[Member]) -> set[str]:
    """The protocols that all members support."""
    offers = [
        {protocol.name for protocol in member.subscription.classic.supported_protocols}
        for member in members
        if member.subscription.classic is not None
    ]
    return set.intersection(*offers)
