"""From one protocol to the other while members go on working (group.consumer.migration.policy).

A classic group becomes a consumer group when the first member joins it with a ConsumerGroupHeartbeat: its members stay,
with what they have, and go on speaking the classic protocol (`classic_members`). A consumer group becomes a classic one
when the last member that speaks the new protocol is gone and others are left. Either way the log first says that the
one is gone and then what the other is; generation and group epoch are one number that goes on.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.group_record import group_record
from quire.coordinators.group.classic.member import Member as ClassicMember
from quire.coordinators.group.classic.state import ClassicState
from quire.coordinators.group.consumer import embedded_protocol, records
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.draft import Draft
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


def upgraded(group: ClassicGroup, settings: ConsumerSettings, image: ClusterImage) -> Draft:
    """The consumer group that the classic one becomes. GROUP_ID_NOT_FOUND where it cannot."""
    _check_upgrade(group, settings)
    draft = Draft(ConsumerGroup(group.group_id), group.tombstones())
    read = [_read(group, member) for member in group.members.values()]
    held = _held(read, image)
    members = [_to_consumer(group, each, held[each.member.member_id]) for each in read]
    epoch = group.generation
    draft.write(*(records.member_metadata(group.group_id, each.member_id, each.subscription) for each in members))
    draft.write(records.group_metadata(group.group_id, epoch, 0))
    for each in members:
        target = to_assignment(each.current.assigned)
        draft.write(records.target_assignment(group.group_id, each.member_id, target))
    draft.write(records.target_metadata(group.group_id, epoch, 0))
    draft.write(*(records.current_assignment(group.group_id, each.member_id, each.current) for each in members))
    return draft


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


class _Read(NamedTuple):
    """A member of a classic group with what it said when it joined last, and what it was given since."""

    member: ClassicMember
    said: ConsumerProtocolSubscription
    given: ConsumerProtocolAssignment


def _read(group: ClassicGroup, member: ClassicMember) -> _Read:
    try:
        said = embedded_protocol.read_subscription(next(iter(member.protocols.values()), b""))
        given = embedded_protocol.read_assignment(member.assignment)
    except ProtocolError:
        raise _cannot_upgrade(group, "the embedded consumer protocol is malformed") from None
    if given.user_data:
        raise _cannot_upgrade(
            group, "a custom assignor is in use, whose data would be lost: choose a default one first"
        )
    return _Read(member, said, given)


def _held(members: list[_Read], image: ClusterImage) -> dict[str, dict[bytes, set[int]]]:
    """Who has what, by member id. Whatever an assignor of the clients did, no partition has two owners.

    A cooperative member has what it had when it joined until it hears of its assignment, and gives up the rest only
    then: which may be about to happen, or not before it joins again, if its group was rebalancing. The later the
    generation in which it had that, the more it is believed.
    """
    held: dict[str, dict[bytes, set[int]]] = {each.member.member_id: {} for each in members}
    taken: set[tuple[bytes, int]] = set()

    def take(member_id: str, topic_id: bytes, partitions: Iterable[int]) -> None:
        free = [partition for partition in partitions if (topic_id, partition) not in taken]
        if free:
            held[member_id].setdefault(topic_id, set()).update(free)
            taken.update((topic_id, partition) for partition in free)

    for each in members:
        for topic_id, partitions in embedded_protocol.assigned_to(each.given, image).items():
            take(each.member.member_id, topic_id, partitions)
    for each in sorted(members, key=lambda each: -each.said.generation_id):
        for topic_id, owned in embedded_protocol.owned_by(each.said, image):
            take(each.member.member_id, topic_id, owned)
    return held


def _to_consumer(group: ClassicGroup, read: _Read, partitions: Mapping[bytes, set[int]]) -> Member:
    member, said = read.member, read.said
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
    """Whether those who would be left can be a classic group."""
    return (
        bool(remaining)
        and all(member.is_classic for member in remaining)
        and settings.may_downgrade
        and len(remaining) <= settings.most_classic_members
        and bool(_common_protocols(remaining))
    )


def downgraded(
    draft: Draft, remaining: list[Member], image: ClusterImage, now_ms: int, *, rebalances: bool
) -> list[StateRecord]:
    """What is to be written for the group to be a classic one of these members, with what they have.

    A group without a leader rebalances, whichever coordinator reads that first.
    """
    group = ClassicGroup(draft.group.group_id, lambda member: None)
    for member in remaining:
        group.add(_to_classic(member, image), embedded_protocol.PROTOCOL_TYPE)
    group.generation = draft.group.group_epoch
    group.protocol_name = group.preferred_protocol()
    group.state = ClassicState.STABLE
    group.state_since_ms = now_ms
    if rebalances:
        group.leader_id = None
    return [*draft.records, *draft.group.tombstones(), group_record(group)]


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


def classic_assignment(classic: ClassicMemberMetadata, held: Held, image: ClusterImage) -> bytes:
    version = embedded_protocol.version_of(classic.supported_protocols[0].metadata)
    return embedded_protocol.write_assignment(to_assignment(held), version, image)


def _common_protocols(members: list[Member]) -> set[str]:
    """What all of them support."""
    offers = [
        {protocol.name for protocol in member.subscription.classic.supported_protocols}
        for member in members
        if member.subscription.classic is not None
    ]
    return set.intersection(*offers)
