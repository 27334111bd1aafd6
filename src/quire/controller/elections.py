"""Who leads a partition when brokers come and go, and who is in its ISR.

A leader is elected from the ISR, whose members have everything that was acknowledged. With eligible leader replicas
(KIP-966) a member that leaves the ISR while this is below min.insync.replicas stays eligible, and electing it is as
safe. Without that feature the last member stays in the ISR. If no replica of either set is up, the partition has no
leader, unless `unclean.leader.election.enable` allows any replica to lead, at the price of losing data.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from quire.config.broker_config import BrokerConfig
from quire.config.topic_config import TopicConfig
from quire.metadata.features import has_eligible_leader_replicas
from quire.metadata.image import ClusterImage, PartitionImage, TopicImage
from quire.metadata.partition_image import MIGRATING_DIRECTORY, NO_LEADER, UNASSIGNED_DIRECTORY
from quire.protocol.messages.metadata_records import PartitionChangeRecord

RECOVERING = 1
_ISR_SHRINK_BUMPS_EPOCH_BELOW = 12

CanLead = Callable[[int], bool]
"""Whether a broker is up and has its replica."""


@dataclass(frozen=True, slots=True)
class ElectionRules:
    """What decides an election besides the partition: the cluster's features and the topic's settings."""

    eligible_leader_replicas: bool = False
    min_insync_replicas: int = 1
    unclean: bool = False
    metadata_version: int = 30


def rules_for(image: ClusterImage, config: BrokerConfig, topic: TopicImage) -> ElectionRules:
    """The settings are the topic's or the cluster's: not what the node of the controller has for itself alone."""
    settings = TopicConfig(image.topic_configs(topic.name), config, cluster_wide=True)
    return ElectionRules(
        eligible_leader_replicas=has_eligible_leader_replicas(image.features),
        min_insync_replicas=settings.get_int("min.insync.replicas"),
        unclean=settings.get_bool("unclean.leader.election.enable"),
        metadata_version=image.metadata_version,
    )


def change_partition(
    partition: PartitionImage,
    topic_id: bytes,
    index: int,
    can_lead: CanLead,
    rules: ElectionRules,
    *,
    without: int | None = None,
    unclean_shutdown: bool = False,
) -> PartitionChangeRecord | None:
    """The change that gives the partition the best leader and ISR, or None if it has them.

    `without` leaves the ISR; after an unclean shutdown it may have lost records and is not eligible either.
    """
    isr = tuple(each for each in partition.isr if each != without)
    elr = tuple(each for each in partition.elr if not (unclean_shutdown and each == without))
    leader, unclean = _elect(partition, isr, elr, can_lead, rules)
    if leader not in (NO_LEADER, *isr):
        # From the ELR, or unclean: only the new leader is in sync with itself.
        isr = (leader,)
        elr = () if unclean else tuple(each for each in elr if each != leader)
    if not isr and not rules.eligible_leader_replicas:
        isr = partition.isr
    record = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    if isr != partition.isr:
        record.isr = list(isr)
    bumps_epoch = len(isr) < len(partition.isr) and rules.metadata_version < _ISR_SHRINK_BUMPS_EPOCH_BELOW
    if leader != partition.leader or bumps_epoch:
        record.leader = leader
    if unclean and partition.leader_recovery_state != RECOVERING:
        record.leader_recovery_state = RECOVERING
    if rules.eligible_leader_replicas:
        gone = without if unclean_shutdown else None
        _set_eligible(partition, record, isr, elr, gone, rules.min_insync_replicas)
    empty = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    return None if record == empty else record


def _elect(
    partition: PartitionImage, isr: tuple[int, ...], elr: tuple[int, ...], can_lead: CanLead, rules: ElectionRules
) -> tuple[int, bool]:
    """The leader, and whether it may lack acknowledged records."""
    eligible = (*isr, *elr) if rules.eligible_leader_replicas else isr
    for candidate in (partition.leader, *partition.replicas):
        if candidate in eligible and can_lead(candidate):
            return candidate, False
    last_known = partition.last_known_elr
    if rules.eligible_leader_replicas and not eligible and len(last_known) == 1 and can_lead(last_known[0]):
        return last_known[0], True
    if rules.unclean:
        for candidate in partition.replicas:
            if can_lead(candidate):
                return candidate, True
    return NO_LEADER, False


def _set_eligible(
    partition: PartitionImage,
    record: PartitionChangeRecord,
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    gone: int | None,
    min_insync_replicas: int,
) -> None:
    """Below the minimum, replicas that were in the ISR stay eligible; at or above it the ELR is empty."""
    last_known: tuple[int, ...] = ()
    if len(isr) >= min(min_insync_replicas, len(partition.replicas)):
        elr = ()
    else:
        candidates = dict.fromkeys((*elr, *partition.isr))
        elr = tuple(each for each in candidates if each not in isr and each != gone)
        known = dict.fromkeys((*partition.last_known_elr, *partition.elr, *partition.isr))
        last_known = tuple(each for each in known if each not in isr and each not in elr)
        if not isr:
            # The last leader has the most records: the partition waits for it if no other replica returns.
            led_last = partition.leader if partition.leader != NO_LEADER else next(iter(partition.last_known_elr), None)
            last_known = () if led_last is None else (led_last,)
    if elr != partition.elr:
        record.eligible_leader_replicas = list(elr)
    if last_known != partition.last_known_elr:
        record.last_known_elr = list(last_known)


def broker_left(
    image: ClusterImage, config: BrokerConfig, broker_id: int, *, unclean_shutdown: bool = False
) -> Iterator[PartitionChangeRecord]:
    """Removes `broker_id` from the ISR and leadership of its partitions."""

    def is_affected(partition: PartitionImage) -> bool:
        held = broker_id == partition.leader or broker_id in partition.isr
        return held or (unclean_shutdown and broker_id in partition.elr)

    return _changes(image, config, is_affected, left=broker_id, unclean_shutdown=unclean_shutdown)


def broker_joined(image: ClusterImage, config: BrokerConfig, broker_id: int) -> Iterator[PartitionChangeRecord]:
    """Elects leaders for partitions that waited for `broker_id`."""

    def is_affected(partition: PartitionImage) -> bool:
        return not partition.has_leader and broker_id in partition.replicas

    return _changes(image, config, is_affected, joined=broker_id)


def keeps_leaders_without(image: ClusterImage, broker_id: int) -> bool:
    """Whether each partition that has the broker in ISR or ELR has another member of the ISR that can lead."""
    return all(
        any(each != broker_id and _can_lead(image, partition, each, None) for each in partition.isr)
        for topic in image.topics_by_name.values()
        for partition in topic.partitions.values()
        if broker_id in partition.isr or broker_id in partition.elr
    )


def replica_lost(
    image: ClusterImage, config: BrokerConfig, topic: TopicImage, index: int, broker_id: int
) -> PartitionChangeRecord | None:
    """Removes one replica of `broker_id`: its directory has failed."""
    partition = topic.partitions[index]

    def can_lead(candidate: int) -> bool:
        return candidate != broker_id and _can_lead(image, partition, candidate, None)

    rules = rules_for(image, config, topic)
    return change_partition(partition, topic.topic_id, index, can_lead, rules, without=broker_id)


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
        return _can_lead(image, partition, candidate, None)

    return change_partition(partition, topic.topic_id, index, can_lead, rules_for(image, config, topic))


def directories_failed(
    image: ClusterImage, config: BrokerConfig, broker_id: int, directories: tuple[bytes, ...]
) -> Iterator[PartitionChangeRecord]:
    """Removes the replicas of `broker_id` in directories that went offline, until it restarts."""

    def is_affected(partition: PartitionImage) -> bool:
        return _directory(partition, broker_id) in directories

    return _changes(image, config, is_affected, left=broker_id)


def _changes(
    image: ClusterImage,
    config: BrokerConfig,
    is_affected: Callable[[PartitionImage], bool],
    *,
    left: int | None = None,
    joined: int | None = None,
    unclean_shutdown: bool = False,
) -> Iterator[PartitionChangeRecord]:
    for topic in image.topics_sorted():
        rules: ElectionRules | None = None
        for index, partition in sorted(topic.partitions.items()):
            if not is_affected(partition):
                continue
            rules = rules or rules_for(image, config, topic)

            def can_lead(candidate: int, partition: PartitionImage = partition) -> bool:
                return candidate != left and _can_lead(image, partition, candidate, joined)

            change = change_partition(
                partition, topic.topic_id, index, can_lead, rules, without=left, unclean_shutdown=unclean_shutdown
            )
            if change is not None:
                yield change


def _can_lead(image: ClusterImage, partition: PartitionImage, broker_id: int, joined: int | None) -> bool:
    broker = image.brokers.get(broker_id)
    if broker is None or not (broker.is_active or broker_id == joined):
        return False
    directory = _directory(partition, broker_id)
    return directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY, *broker.log_dirs)


def _directory(partition: PartitionImage, broker_id: int) -> bytes:
    if broker_id not in partition.replicas:
        return UNASSIGNED_DIRECTORY
    return partition.directories[partition.replicas.index(broker_id)]
