"""ConsumerGroupDescribe: the response for one consumer group."""

from quire.coordinators.group.consumer.assignors import Assignment
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.member import Member, to_assignment
from quire.metadata.image import ClusterImage
from quire.protocol.messages import consumer_group_describe as messages

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def described(group: ConsumerGroup, assignor: str, image: ClusterImage) -> messages.DescribedGroup:
    return messages.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor,
        members=[_member(group, group.members[member_id], image) for member_id in sorted(group.members)],
    )


def _member(group: ConsumerGroup, member: Member, image: ClusterImage) -> messages.Member:
    subscription, current = member.subscription, member.current
    return messages.Member(
        member_id=member.member_id,
        instance_id=subscription.instance_id,
        rack_id=subscription.rack_id,
        member_epoch=current.member_epoch,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        subscribed_topic_names=list(subscription.topic_names),
        subscribed_topic_regex=subscription.topic_regex,
        assignment=_assignment(to_assignment(current.assigned), image),
        target_assignment=_assignment(group.targets.get(member.member_id, {}), image),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(assignment: Assignment, image: ClusterImage) -> messages.Assignment:
    """Leaves out deleted topics, which no longer have a name."""
    return messages.Assignment(
        topic_partitions=[
            messages.TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=sorted(assignment[topic_id]))
            for topic_id in sorted(assignment)
            if (topic := image.topic_by_id(topic_id)) is not None
        ]
    )
