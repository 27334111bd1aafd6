"""Who leads a partition when brokers come and go, and who is in its ISR.

A leader is elected from the ISR, whose members have everything that was acknowledged. With eligible leader replicas
(KIP-966) a member that leaves the ISR while this is below min.insync.replicas stays eligible, and electing it is as
safe. Without that feature the last member stays in the ISR. If no replica of either set is up, the partition has no
leader, unless `unclean.leader.election.enable` allows any replica to lead, at the price of losing data.

If all members of both sets may have lost records, the last leader may lead again when it is back (`last_known_elr`). If
it has lost its whole disk, the others are in its place: an empty leader would empty them, too. A single one of them
leads, because what it lacks is gone; if there are several, the operator must allow an unclean election.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace

from quire.config.broker_config import BrokerConfig
from quire.config.topic_config import TopicConfig
from quire.controller.controller_result import Portions
from quire.controller.partition_change import NO_DIRECTORIES, ElectionRules, change_partition, holders
from quire.controller.reassignment import Assignment, Holders
from quire.metadata.features import has_eligible_leader_replicas
from quire.metadata.image import BROKER, TOPIC, ClusterImage, ConfigResource, PartitionImage, TopicImage
from quire.metadata.partition_image import (
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
)
from quire.protocol.messages.metadata_records import PartitionChangeRecord

DECIDING = ("min.insync.replicas", "unclean.leader.election.enable")
"""Settings of a topic, or of the whole cluster, that decide about leaders and ISRs."""

DecidingChanges = Mapping[ConfigResource, Mapping[str, str | None]]


def rules_for(
    image: ClusterImage, config: BrokerConfig, topic: TopicImage, after: DecidingChanges | None = None
) -> ElectionRules:
    """The settings are the topic's or the cluster's: not what the node of the controller has for itself alone.

    With `after`, as they will be when these settings are changed.
    """
    overrides: dict[str, str] = {}
    for resource in (ConfigResource(BROKER, ""), ConfigResource(TOPIC, topic.name)):
        own = {**image.configs.get(resource, {}), **(after or {}).get(resource, {})}
        overrides |= {name: value for name in DECIDING if (value := own.get(name)) is not None}
    settings = TopicConfig(overrides, config, cluster_wide=True)
    return ElectionRules(
        eligible_leader_replicas=has_eligible_leader_replicas(image.features),
        min_insync_replicas=settings.get_int("min.insync.replicas"),
        unclean=settings.get_bool("unclean.leader.election.enable"),
        metadata_version=image.metadata_version,
    )


def settle(
    image: ClusterImage,
    config: BrokerConfig,
    broker_id: int,
    *,
    unclean_shutdown: bool = False,
    offline: Container[bytes] = (),
) -> Portions[None]:
    """Adapts the leaders and ISRs of a broker's partitions to the state of the broker, one partition in each step.

    A step uses the image as it is then, and writes nothing if the partition is as it should be. So what happens between
    two steps does no harm, and the steps may be repeated: they are for a broker that was fenced or unfenced, stops, or
    has lost a directory, and for a controller that takes over from one that died in the middle of them.

    `offline` are directories that have failed: a record cannot say that a broker has no directory left.
    """
    for topic, index in image.replicas_on(broker_id):
        partition = topic.partitions[index]
        change: PartitionChangeRecord | None = None
        is_offline = _directory(partition, broker_id) in offline
        if is_offline or not _can_lead(image, partition, broker_id):
            is_lost = unclean_shutdown or is_offline or lost_its_directory(image, partition, broker_id)
            change = _without(image, config, topic, index, broker_id, unclean_shutdown=is_lost)
        elif not partition.has_leader or partition.is_reassigning:
            change = _change(image, config, topic, index)
        yield [] if change is None else [change]


def settle_all(image: ClusterImage, config: BrokerConfig) -> Portions[None]:
    """What an earlier controller may have left undone."""
    for broker_id in image.brokers_with_replicas():
        yield from settle(image, config, broker_id)


def broker_left(
    image: ClusterImage, config: BrokerConfig, broker_id: int, *, unclean_shutdown: bool = False
) -> Iterator[PartitionChangeRecord]:
    """Removes `broker_id` from the ISR and leadership of its partitions, whatever its state is in the image."""
    for topic, index in image.replicas_on(broker_id):
        change = _without(image, config, topic, index, broker_id, unclean_shutdown=unclean_shutdown)
        if change is not None:
            yield change


def keeps_leaders_without(image: ClusterImage, broker_id: int) -> bool:
    """Whether each partition that has the broker in ISR or ELR has another member of the ISR that can lead."""
    partitions = (topic.partitions[index] for topic, index in image.replicas_on(broker_id))
    return all(
        any(each != broker_id and _can_lead(image, partition, each) for each in partition.isr)
        for partition in partitions
        if broker_id in partition.isr or broker_id in partition.elr
    )


def leads_any(image: ClusterImage, broker_id: int) -> bool:
    return any(topic.partitions[index].leader == broker_id for topic, index in image.replicas_on(broker_id))


def replica_lost(
    image: ClusterImage, config: BrokerConfig, topic: TopicImage, index: int, broker_id: int
) -> PartitionChangeRecord | None:
    """Removes one replica of `broker_id`: its directory has failed, and what was not synced there may be lost."""
    return _without(image, config, topic, index, broker_id, unclean_shutdown=True)


def replica_emptied(
    image: ClusterImage, config: BrokerConfig, topic: TopicImage, index: int, broker_id: int
) -> PartitionChangeRecord | None:
    """Removes one replica of `broker_id`: it is a new one, in another directory than the one that is gone."""
    return _without(image, config, topic, index, broker_id, unclean_shutdown=True, is_empty=True)


def replica_found(
    image: ClusterImage, config: BrokerConfig, topic: TopicImage, index: int, broker_id: int
) -> PartitionChangeRecord | None:
    """Elects a leader for a partition that has none: its replica of `broker_id` is in a directory that is online."""
    partition = topic.partitions[index]
    if partition.has_leader:
        return None

    def can_lead(candidate: int) -> bool:
        if candidate == broker_id:
            return image.brokers[broker_id].is_active
        return _can_lead(image, partition, candidate)

    return change_partition(partition, topic.topic_id, index, can_lead, rules_for(image, config, topic))


def lost_its_directory(image: ClusterImage, partition: PartitionImage, broker_id: int) -> bool:
    """Whether the broker is registered without the directory that has its replica."""
    broker = image.brokers.get(broker_id)
    directory = _directory(partition, broker_id)
    if broker is None or directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
        return False
    return directory not in broker.log_dirs


def no_longer_eligible(
    image: ClusterImage, config: BrokerConfig, topics: Iterable[TopicImage], after: DecidingChanges
) -> Iterator[PartitionChangeRecord | None]:
    """Clears eligible replicas where settings change so that the ISR is no longer below the minimum.

    From then on the leader commits records that those replicas lack. So this must be written before the settings, or
    together with them. None for a partition that stays as it is.
    """
    for topic, index in still_there(image, topics):
        partition = topic.partitions[index]
        change = None
        if partition.elr or partition.last_known_elr:
            change = _change(image, config, topic, index, rules=rules_for(image, config, topic, after))
        yield change


def settle_topics(image: ClusterImage, config: BrokerConfig, topics: Iterable[TopicImage]) -> Portions[None]:
    """Does what the settings of the topics allow by now.

    Partitions that wait for a leader get one if unclean elections are allowed, and reassignments may be complete with a
    lower min.insync.replicas.
    """
    for topic, index in still_there(image, topics):
        change = None
        partition = topic.partitions[index]
        waits = not partition.has_leader and rules_for(image, config, topic).unclean
        if waits or partition.is_reassigning:
            change = _change(image, config, topic, index)
        yield [] if change is None else [change]


def elect_preferred(
    image: ClusterImage, config: BrokerConfig, topic: TopicImage, index: int
) -> PartitionChangeRecord | None:
    """Makes the first replica the leader; None if it leads, is down or is not in the ISR.

    From the ELR it is not elected while another leads: the ISR would shrink to it, and the others would follow a
    replica that has less than they.
    """
    partition = topic.partitions[index]
    first = partition.preferred_leader
    if partition.leader == first or first not in partition.isr or not _can_lead(image, partition, first):
        return None
    return _change(image, config, topic, index, prefers_first=True)


def elect_any(image: ClusterImage, config: BrokerConfig, topic: TopicImage, index: int) -> PartitionChangeRecord | None:
    """Elects a leader for a partition that waits for one, from all its replicas; None if no replica is up.

    This is the operator's decision, so the topic need not allow unclean elections.
    """
    rules = replace(rules_for(image, config, topic), unclean=True)
    change = _change(image, config, topic, index, rules=rules)
    return change if change is not None and change.leader >= 0 else None


def can_lead_now(image: ClusterImage, partition: PartitionImage, broker_id: int) -> bool:
    """Whether the broker is up, is not shutting down, and has its replica."""
    return _can_lead(image, partition, broker_id)


def still_there(image: ClusterImage, topics: Iterable[TopicImage]) -> Iterator[tuple[TopicImage, int]]:
    """Every partition of the topics. The image may change between two of them."""
    for topic in topics:
        for index in list(topic.partitions):
            if topic.topic_id in image.topics_by_id:
                yield topic, index


def isr_altered(
    image: ClusterImage,
    config: BrokerConfig,
    topic: TopicImage,
    index: int,
    isr: tuple[int, ...],
    leader_recovery_state: int,
) -> PartitionChangeRecord | None:
    """The leader changes the ISR. It loses the leadership if its directory has failed meanwhile."""
    partition = topic.partitions[index]

    def can_lead(candidate: int) -> bool:
        return _can_lead(image, partition, candidate)

    rules = rules_for(image, config, topic)
    return change_partition(
        partition, topic.topic_id, index, can_lead, rules, isr=isr, leader_recovery_state=leader_recovery_state
    )


def reassigned(
    image: ClusterImage, config: BrokerConfig, topic: TopicImage, index: int, assignment: Assignment
) -> PartitionChangeRecord | None:
    """Changes the replicas of a partition; those that may not lead any more hand over."""
    new = (each for each in assignment.replicas if each not in topic.partitions[index].replicas)
    directories = {each: image.brokers[each].directory_for_new_replicas() or UNASSIGNED_DIRECTORY for each in new}
    return _change(image, config, topic, index, assignment=assignment, directories=directories)


def holders_now(image: ClusterImage, config: BrokerConfig, topic: TopicImage, index: int) -> Holders:
    """Which replicas of a partition have everything that was acknowledged."""
    partition = topic.partitions[index]
    return holders(partition, partition.isr, partition.elr, None, rules_for(image, config, topic))


def _without(
    image: ClusterImage,
    config: BrokerConfig,
    topic: TopicImage,
    index: int,
    broker_id: int,
    *,
    unclean_shutdown: bool,
    is_empty: bool = False,
) -> PartitionChangeRecord | None:
    """The change that removes the broker, if the partition has it. The last member of an ISR stays in it."""
    partition = topic.partitions[index]
    in_isr = broker_id in partition.isr
    may_leave = in_isr and (len(partition.isr) > 1 or has_eligible_leader_replicas(image.features))
    in_elr = unclean_shutdown and broker_id in partition.elr
    led_last = is_empty and broker_id in partition.last_known_elr
    if broker_id != partition.leader and not (may_leave or in_elr or led_last):
        return None
    return _change(image, config, topic, index, left=broker_id, unclean_shutdown=unclean_shutdown, is_empty=is_empty)


def _change(
    image: ClusterImage,
    config: BrokerConfig,
    topic: TopicImage,
    index: int,
    *,
    left: int | None = None,
    unclean_shutdown: bool = False,
    is_empty: bool = False,
    rules: ElectionRules | None = None,
    prefers_first: bool = False,
    assignment: Assignment | None = None,
    directories: Mapping[int, bytes] = NO_DIRECTORIES,
) -> PartitionChangeRecord | None:
    partition = topic.partitions[index]

    def can_lead(candidate: int) -> bool:
        return candidate != left and _can_lead(image, partition, candidate)

    rules = rules or rules_for(image, config, topic)
    return change_partition(
        partition,
        topic.topic_id,
        index,
        can_lead,
        rules,
        without=left,
        unclean_shutdown=unclean_shutdown,
        is_empty=is_empty,
        prefers_first=prefers_first,
        assignment=assignment,
        directories=directories,
    )


def _can_lead(image: ClusterImage, partition: PartitionImage, broker_id: int) -> bool:
    broker = image.brokers.get(broker_id)
    if broker is None or not broker.is_active:
        return False
    directory = _directory(partition, broker_id)
    return directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY, *broker.log_dirs)


def _directory(partition: PartitionImage, broker_id: int) -> bytes:
    if broker_id not in partition.replicas:
        return UNASSIGNED_DIRECTORY
    return partition.directories[partition.replicas.index(broker_id)]
