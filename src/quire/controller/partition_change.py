"""One change of a partition: its best leader and ISR, and the end of a reassignment, as one record.

A leader is elected from the ISR, or from the eligible leader replicas (KIP-966), or unclean if the topic allows that;
`quire.controller.elections` says when. Every change of a partition is made here, so the same rules hold for all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quire.controller.reassignment import Assignment, Holders, assignment_of, completed
from quire.metadata.features import has_directories
from quire.metadata.image import PartitionImage
from quire.metadata.partition_image import NO_LEADER, RECOVERED, RECOVERING, UNASSIGNED_DIRECTORY
from quire.protocol.messages.metadata_records import PartitionChangeRecord

_ISR_SHRINK_BUMPS_EPOCH_BELOW = 12

NO_DIRECTORIES: Mapping[int, bytes] = {}

CanLead = Callable[[int], bool]
"""Whether a broker is up and has its replica."""


@dataclass(frozen=True, slots=True)
class ElectionRules:
    """What decides an election besides the partition: the cluster's features and the topic's settings."""

    eligible_leader_replicas: bool = False
    min_insync_replicas: int = 1
    unclean: bool = False
    metadata_version: int = 30


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
    assignment: Assignment | None = None,
    directories: Mapping[int, bytes] = NO_DIRECTORIES,
) -> PartitionChangeRecord | None:
    """The change that gives the partition the best leader and ISR, or None if it has them.

    `without` leaves the ISR; after an unclean shutdown it may have lost records and is not eligible either, and if it
    `is_empty`, it has lost all of them. `isr` and `leader_recovery_state` are what the leader asks for. A leader keeps
    its place if it can, unless `prefers_first`: then the first replica takes it. `assignment` is another one than the
    partition has, with the `directories` of new replicas. A reassignment ends here if it is complete.
    """
    isr = tuple(each for each in (partition.isr if isr is None else isr) if each != without)
    elr = tuple(each for each in partition.elr if not (unclean_shutdown and each == without))
    gone = without if unclean_shutdown else None
    before, assignment = partition, assignment or assignment_of(partition)
    partition = partition.reassigned(*assignment)
    isr, elr = _among(assignment.replicas, isr), _among(assignment.replicas, elr)
    done = completed(assignment, holders(partition, isr, elr, gone, rules))
    if done is not None and any(can_lead(each) for each in isr if each in done.replicas):
        partition = partition.reassigned(*done)
        isr, elr = _among(done.replicas, isr), _among(done.replicas, elr)
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
        isr = _among(partition.replicas, partition.isr)
    after, partition = partition, before
    record = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    _write_assignment(record, partition, after, directories, rules)
    if isr != partition.isr:
        record.isr = list(isr)
    shrinks = any(each not in isr for each in partition.isr)
    loses_replicas = any(each not in after.replicas for each in partition.replicas)
    bumps_epoch = loses_replicas or (shrinks and rules.metadata_version < _ISR_SHRINK_BUMPS_EPOCH_BELOW)
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


def holders(
    partition: PartitionImage, isr: tuple[int, ...], elr: tuple[int, ...], gone: int | None, rules: ElectionRules
) -> Holders:
    """Who has everything that was acknowledged, if the ISR and the ELR become these."""
    elr = _eligible(partition, isr, elr, gone, rules)[0] if rules.eligible_leader_replicas else ()
    return Holders(isr, elr, rules.min_insync_replicas)


def _among(replicas: tuple[int, ...], members: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(each for each in members if each in replicas)


def _write_assignment(
    record: PartitionChangeRecord,
    before: PartitionImage,
    after: PartitionImage,
    directories: Mapping[int, bytes],
    rules: ElectionRules,
) -> None:
    if after.replicas != before.replicas:
        record.replicas = list(after.replicas)
        if has_directories(rules.metadata_version):
            known = {**directories, **dict(zip(before.replicas, before.directories, strict=True))}
            record.directories = [known.get(each, UNASSIGNED_DIRECTORY) for each in after.replicas]
    if after.adding_replicas != before.adding_replicas:
        record.adding_replicas = list(after.adding_replicas)
    if after.removing_replicas != before.removing_replicas:
        record.removing_replicas = list(after.removing_replicas)


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
        # A replica that is being added may have nothing yet.
        preference = sorted(
            partition.replicas, key=lambda each: (each not in last_leader, each in partition.adding_replicas)
        )
        for candidate in preference:
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
    candidates = dict.fromkeys(_among(partition.replicas, (*elr, *partition.isr)))
    elr = tuple(each for each in candidates if each not in isr and each != gone)
    known = dict.fromkeys(_among(partition.replicas, (*partition.last_known_elr, *partition.elr, *partition.isr)))
    last_known = tuple(each for each in known if each not in isr and each not in elr)
    return elr, last_known


def _last_leader(partition: PartitionImage) -> tuple[int, ...]:
    """It has the most records: a partition without a leader waits for it if no other replica returns.

    It is remembered from the moment when there is no leader, whether or not the ISR has members then: they may return
    without what they had. Where the feature came later, it was not remembered, and a member of the ISR counts.
    """
    if partition.leader != NO_LEADER:
        known: tuple[int, ...] = (partition.leader,)
    else:
        known = partition.last_known_elr or partition.isr[:1]
    # If it was removed from the replicas, none of the others is known to have the most.
    return _among(partition.replicas, known) or (partition.replicas if known else ())


def _known_without(emptied: int | None, last_leader: tuple[int, ...], partition: PartitionImage) -> tuple[int, ...]:
    """If the last leader is empty now, all other replicas take its place: none of them is known to have the most."""
    if emptied not in last_leader:
        return last_leader
    return tuple(each for each in partition.replicas if each != emptied) or last_leader
