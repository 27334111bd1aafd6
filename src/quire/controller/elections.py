"""Who leads a partition when brokers come and go, and who is in its ISR.

A leader is elected from the ISR, whose members have everything that was acknowledged. With eligible leader replicas
(KIP-966) a member that leaves the ISR while this is below min.insync.replicas stays eligible, and electing it is as
safe. Without that feature the last member stays in the ISR. If no replica of either set is up, the partition has no
leader, unless `unclean.leader.election.enable` allows any replica to lead, at the price of losing data.

If all members of both sets may have lost records, the last leader may lead again when it is back (`last_known_elr`). If
it has lost its whole disk, the others are in its place: an empty leader would empty them, too. A single one of them
leads, because what it lacks is gone; if there are several, the operator must allow an unclean election.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from quire.config.broker_config import BrokerConfig
from quire.config.topic_config import TopicConfig
from quire.controller.controller_result import Portions
from quire.metadata.features import has_eligible_leader_replicas
from quire.metadata.image import BROKER, TOPIC, ClusterImage, ConfigResource, PartitionImage, TopicImage
from quire.metadata.partition_image import (
    MIGRATING_DIRECTORY,
    NO_LEADER,
    RECOVERED,
    RECOVERING,
    UNASSIGNED_DIRECTORY,
)
from quire.protocol.messages.metadata_records import PartitionChangeRecord

_ISR_SHRINK_BUMPS_EPOCH_BELOW = 12
DECIDING = ("min.insync.replicas", "unclean.leader.election.enable")
"""Settings of a topic, or of the whole cluster, that decide about leaders and ISRs."""

DecidingChanges = Mapping[ConfigResource, Mapping[str, str | None]]

CanLead = Callable[[int], bool]
"""Whether a broker is up and has its replica."""


@dataclass(frozen=True, slots=True)
class ElectionRules:
    """What decides an election besides the partition: the cluster's features and the topic's settings."""

    eligible_leader_replicas: bool = False
    min_insync_replicas: int = 1
    unclean: bool = False
    metadata_version: int = 30


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


def change_partition(
    partition: PartitionImage,
    topic_id: bytes,
    index: int,
    can_lead: CanLead,
    rules: ElectionRules,
    *,
    without: int | None = None,
    unclean_shutdown: bool = False,
    is_empty: bool = False,
    isr: tuple[int, ...] | None = None,
    leader_recovery_state: int | None = None,
    prefers_first: bool = False,
) -> PartitionChangeRecord | None:
    """The change that gives the partition the best leader and ISR, or None if it has them.

    `without` leaves the ISR; after an unclean shutdown it may have lost records and is not eligible either, and if it
    `is_empty`, it has lost all of them. `isr` and `leader_recovery_state` are what the leader asks for. A leader keeps
    its place if it can, unless `prefers_first`: then the first replica takes it.
    """
    isr = tuple(each for each in (partition.isr if isr is None else isr) if each != without)
    elr = tuple(each for each in partition.elr if not (unclean_shutdown and each == without))
    gone = without if unclean_shutdown else None
    # Before the election: a replica that leaves the ISR now may lead, and no other may while it is down.
    elr, last_known = _eligible(partition, isr, elr, gone, rules)
    last_leader = _known_without(without if is_empty else None, _last_leader(partition), partition)
    leader, unclean = _elect(partition, isr, elr, last_leader, can_lead, rules, prefers_first=prefers_first)
    if leader not in (NO_LEADER, *isr):
        # From the ELR, or unclean: only the new leader is in sync with itself.
        isr = (leader,)
        elr, last_known = ((), ()) if unclean else _eligible(partition, isr, elr, gone, rules)
    if leader == NO_LEADER:
        last_known = last_leader
    if not isr and not rules.eligible_leader_replicas:
        isr = partition.isr
    record = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    if isr != partition.isr:
        record.isr = list(isr)
    shrinks = any(each not in isr for each in partition.isr)
    bumps_epoch = shrinks and rules.metadata_version < _ISR_SHRINK_BUMPS_EPOCH_BELOW
    if leader != partition.leader or bumps_epoch:
        record.leader = leader
    if unclean and partition.leader_recovery_state != RECOVERING:
        record.leader_recovery_state = RECOVERING
    elif not unclean:
        if leader_recovery_state is None and leader != partition.leader:
            # The leader that was elected unclean leads no longer, and this one lacks nothing that it had.
            leader_recovery_state = RECOVERED
        if leader_recovery_state not in (None, partition.leader_recovery_state):
            record.leader_recovery_state = leader_recovery_state
    if rules.eligible_leader_replicas and elr != partition.elr:
        record.eligible_leader_replicas = list(elr)
    if rules.eligible_leader_replicas and last_known != partition.last_known_elr:
        record.last_known_elr = list(last_known)
    empty = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    return None if record == empty else record


def _elect(
    partition: PartitionImage,
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    last_leader: tuple[int, ...],
    can_lead: CanLead,
    rules: ElectionRules,
    *,
    prefers_first: bool,
) -> tuple[int, bool]:
    """The leader, and whether it may lack acknowledged records."""
    eligible = elr if rules.eligible_leader_replicas else ()
    candidates = partition.replicas if prefers_first else (partition.leader, *partition.replicas)
    # Both have all that is committed, but the others of an ISR would have to follow a replica that has less than they.
    for members in (isr, eligible):
        for candidate in candidates:
            if candidate in members and can_lead(candidate):
                return candidate, False
    none_is_left = rules.eligible_leader_replicas and not isr and not eligible
    if none_is_left and len(last_leader) == 1 and can_lead(last_leader[0]):
        return last_leader[0], True
    if rules.unclean:
        for candidate in sorted(partition.replicas, key=lambda each: each not in last_leader):
            if can_lead(candidate):
                return candidate, True
    return NO_LEADER, False


def _eligible(
    partition: PartitionImage, isr: tuple[int, ...], elr: tuple[int, ...], gone: int | None, rules: ElectionRules
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ELR that goes with an ISR, and the last known ELR.

    Below the minimum, replicas that were in the ISR stay eligible; at or above it the ELR is empty.
    """
    if len(isr) >= min(rules.min_insync_replicas, len(partition.replicas)):
        return (), ()
    candidates = dict.fromkeys((*elr, *partition.isr))
    elr = tuple(each for each in candidates if each not in isr and each != gone)
    known = dict.fromkeys((*partition.last_known_elr, *partition.elr, *partition.isr))
    last_known = tuple(each for each in known if each not in isr and each not in elr)
    return elr, last_known


def _last_leader(partition: PartitionImage) -> tuple[int, ...]:
    """It has the most records: a partition without a leader waits for it if no other replica returns.

    It is remembered from the moment when there is no leader, whether or not the ISR has members then: they may return
    without what they had. Where the feature came later, it was not remembered, and a member of the ISR counts.
    """
    if partition.leader != NO_LEADER:
        return (partition.leader,)
    return partition.last_known_elr or partition.isr[:1]


def _known_without(emptied: int | None, last_leader: tuple[int, ...], partition: PartitionImage) -> tuple[int, ...]:
    """If the last leader is empty now, all other replicas take its place: none of them is known to have the most."""
    if emptied not in last_leader:
        return last_leader
    return tuple(each for each in partition.replicas if each != emptied) or last_leader


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
        elif not partition.has_leader:
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


def elect_unclean(image: ClusterImage, config: BrokerConfig, topics: Iterable[TopicImage]) -> Portions[None]:
    """Elects leaders for partitions that wait for one, where the topic allows unclean elections by now."""
    for topic, index in still_there(image, topics):
        change = None
        if not topic.partitions[index].has_leader and rules_for(image, config, topic).unclean:
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
