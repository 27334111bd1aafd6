"""What a topic promises and survives, in sentences: the core of `quire explain`. docs/guarantees.md gives the reasons.

promises    what its settings promise
now         which faults it survives in its current state
changes     what to change so that it survives more
"""

from collections.abc import Iterator, Sequence

from quire.cli.cluster.topic_state import NEVER, TopicState
from quire.client.admin.topic_replicas import Replicas
from quire.console.output import count

_SHOWN = 5
_USUAL_FACTOR = 3

# --- What the settings promise


def promises(topic: TopicState) -> Iterator[str]:
    yield _acks_all(topic)
    yield _power(topic)
    if topic.settings.unclean_election and topic.factors[1] > 1:
        yield (
            "unclean.leader.election.enable is on: if no replica that has everything is up, another one leads, and "
            "acknowledged records that it lacks are lost."
        )
    yield _acks_one(topic)
    yield "acks=0: nothing is promised, because nothing is acknowledged."


def _acks_all(topic: TopicState) -> str:
    required = topic.required
    survives = f"It survives any number of killed processes{_unless_unclean(topic)}"
    if topic.factors[1] == 1:
        return f"acks=all: a record is acknowledged when its only replica has it. {survives}, but not a lost disk."
    if required == 1:
        return (
            "acks=all: a record is acknowledged when all in-sync replicas have it, and the leader may be the only one. "
            f"{survives}, but the loss of a disk may lose it if that happens."
        )
    return (
        f"acks=all: a record is acknowledged when all in-sync replicas have it, which are at least {required}. "
        f"{survives}, and the loss of {count(required - 1, 'disk')} at a time."
    )


def _unless_unclean(topic: TopicState) -> str:
    return ", while at least one in-sync replica stays up" if _may_elect_behind(topic) else ""


def _may_elect_behind(topic: TopicState) -> bool:
    """Whether an unclean election may elect a replica that lacks acknowledged records: not if all replicas have
    them."""
    return topic.settings.unclean_election and topic.settings.min_insync_replicas < topic.factors[1]


def _power(topic: TopicState) -> str:
    settings = topic.settings
    if settings.flush_messages == 1:
        return (
            f"Power failures: none loses a record{_unless_unclean(topic)}, because it is on disk before it is "
            "acknowledged (flush.messages=1)."
        )
    within = f", those of about the last {settings.flush_ms:,} ms (flush.ms)" if settings.flush_ms < NEVER else ""
    if settings.flush_messages < NEVER:
        what, why = f"fewer than {settings.flush_messages:,} records of each partition (flush.messages){within}", ""
    else:
        what, why = f"the last records{within}", ", because they are acknowledged before they are on disk"
    more = ". An unclean election may lose more" if _may_elect_behind(topic) else ""
    return f"Power failures: {_machines(topic)} may lose {what}{why}{more}."


def _machines(topic: TopicState) -> str:
    """Whose loss of power may lose acknowledged records that are not on disk."""
    required, (smallest, largest) = topic.required, topic.factors
    if largest == 1:
        return "a failure of its machine"
    if required == 1:
        return "a failure of a single machine"
    # Without the feature only the last in-sync replica may lead, even if it has lost what others still have.
    last = "" if topic.keeps_eligible else ", or of the last in-sync one,"
    if required == smallest == largest:
        return f"a failure of all {required} machines at the same time{last}"
    return f"a failure of {required} machines or more at the same time{last}"


def _acks_one(topic: TopicState) -> str:
    if topic.factors[1] == 1:
        return "acks=1: the same, because there is one replica."
    return (
        "acks=1: a record may be lost if its leader fails before all in-sync replicas have copied it, whatever the "
        "settings."
    )


# --- What it survives now


def now(topic: TopicState) -> Iterator[str]:
    yield from _what_failed(topic)
    if not topic.voters:
        yield (
            "The controllers did not answer: without most of them no leader is elected and no ISR changes. So this is "
            "the last known state, and more brokers may be down."
        )
        return
    survived = topic.survives()
    if survived.leaders < 0:
        return
    if survived.writing > 0:
        yield f"{_any_brokers(survived.writing)} may fail, and clients keep writing with acks=all and reading."
    elif survived.writes >= 0 and topic.factors[1] > 1:
        yield "If one more broker fails, partitions may refuse acks=all until it is back."
    if survived.leading <= 0:
        yield "If one more broker fails, partitions may have no leader until it is back."
    elif survived.leading > survived.writing:
        yield (
            f"{_any_brokers(survived.leading)} may fail, and no acknowledged record is lost; clients keep reading, the "
            f"last records when {topic.required} replicas are in sync again."
        )
    if survived.elections < survived.leaders:
        yield (
            f"Brokers are controllers too: with {survived.elections + 1} more of them down, no leader is elected until "
            "most controllers are back."
        )
    yield from _racks(topic)


def _what_failed(topic: TopicState) -> Iterator[str]:
    for broker in topic.down:
        with_replica = [each.partition for each in topic.partitions if broker in each.replicas]
        yield f"Broker {broker} is down; it has replicas of {_named(with_replica)}."
    lagging = list(topic.lagging())
    for broker, behind in lagging:
        yield f"Broker {broker} is up and not in sync with {_named(behind)}."
    for partition in topic.partitions:
        if partition.leader is None:
            yield f"Partition {partition.partition} has no leader: {_awaited(topic, partition)}."
    if topic.refusing:
        have = "has" if len(topic.refusing) == 1 else "have"
        yield (
            f"{_named(topic.refusing).capitalize()} {have} too few replicas in sync: acks=all is refused "
            "(NOT_ENOUGH_REPLICAS), and consumers do not see records that are written with acks=1 meanwhile."
        )
    if not (topic.down or lagging or topic.leaderless or topic.refusing):
        yield "All replicas are in sync." if topic.factors[1] > 1 else "All partitions have a leader."


def _awaited(topic: TopicState, partition: Replicas) -> str:
    """What a partition without a leader waits for."""
    eligible = (*partition.isr, *partition.elr) if topic.keeps_eligible else partition.isr
    if eligible:
        return f"it waits for {_brokers(sorted(eligible))}"
    last_known = sorted(partition.last_known_elr)
    if len(last_known) > 1:
        unclean = _set(topic.name, "unclean.leader.election.enable", "true")
        return (
            f"the replica that was in sync last has lost its disk; {unclean} lets {_brokers(last_known)} lead with "
            "what it has"
        )
    if last_known:
        return f"no replica is sure to have everything, and it waits for {_brokers(last_known)}, which was in sync last"
    return "no replica is sure to have everything"


def _racks(topic: TopicState) -> Iterator[str]:
    racks = topic.named_racks
    if len(racks) < 2:
        return
    leaders, writes = topic.racks_for_leaders(), topic.racks_for_writes()
    if leaders:
        yield f"Losing {_rack(leaders)} takes the leaders of partitions with it."
    refused = [each for each in writes if each not in leaders]
    if refused:
        yield f"Losing {_rack(refused)} leaves too few replicas in sync for acks=all."
    if not leaders and not refused:
        yield f"Each of the {len(racks)} racks may fail, and clients keep reading and writing."


# --- What to change


def changes(topic: TopicState) -> Iterator[str]:
    name, settings = topic.name, topic.settings
    smallest, largest = topic.factors
    for broker in topic.down:
        yield f"Start broker {broker}, or find out why it is down: `quire cluster status`."
    if smallest == 1:
        yield (
            "Use several replicas, so that a broker may fail; as this cannot be changed later, create a topic with "
            f"`quire topics create NAME --partitions {len(topic.partitions)} --replication-factor {_USUAL_FACTOR} "
            f"--set min.insync.replicas={_USUAL_FACTOR - 1}`{_needs_brokers(topic)}."
        )
    elif topic.required == 1:
        yield f"Let at least two replicas have each record: {_set(name, 'min.insync.replicas', '2')}."
    elif topic.required == smallest:
        yield (
            f"Let a broker fail without stopping acks=all: {_set(name, 'min.insync.replicas', str(smallest - 1))}"
            f"{'' if smallest > 2 else ', or better use three replicas'}."
        )
    if settings.min_insync_replicas > largest > 1:
        yield (
            f"min.insync.replicas={settings.min_insync_replicas} counts as {largest}, because there are only {largest} "
            "replicas."
        )
    if settings.unclean_election:
        yield f"Forbid elections that lose records: {_set(name, 'unclean.leader.election.enable', 'false')}."
    if settings.flush_messages != 1:
        yield (
            f"To lose nothing when all machines lose power: {_set(name, 'flush.messages', '1')}. Each acknowledgement "
            "then waits for the disks."
        )
    if not topic.keeps_eligible and largest > 1:
        yield (
            "Enable eligible leader replicas (feature eligible.leader.replicas.version): without them, only the last "
            "in-sync replica may lead when the others have failed before it."
        )
    shared = _shares_racks(topic)
    if shared:
        yield f"Spread the replicas of {_named(shared)} over more racks."


def _shares_racks(topic: TopicState) -> list[int]:
    """The partitions whose replicas are all in one rack, although the brokers have several."""
    if len({rack for rack in topic.racks.values() if rack is not None}) < 2:
        return []
    return [
        each.partition
        for each in topic.partitions
        if len(each.replicas) > 1 and len({topic.racks.get(broker) for broker in each.replicas}) == 1
    ]


def _needs_brokers(topic: TopicState) -> str:
    brokers = len(topic.racks)
    return "" if brokers >= _USUAL_FACTOR else f" (it needs {_USUAL_FACTOR} brokers, and there is {brokers})"


def _set(name: str, key: str, value: str) -> str:
    return f"`quire topics alter {name} --set {key}={value}`"


# --- Words


def _any_brokers(number: int) -> str:
    return "Any one broker" if number == 1 else f"Any {number} brokers"


def _named(partitions: Sequence[int]) -> str:
    if len(partitions) == 1:
        return f"partition {partitions[0]}"
    shown = ", ".join(map(str, partitions[:_SHOWN]))
    more = f" and {len(partitions) - _SHOWN:,} more" if len(partitions) > _SHOWN else ""
    return f"partitions {shown}{more}"


def _brokers(brokers: Sequence[int]) -> str:
    return f"broker {brokers[0]}" if len(brokers) == 1 else f"one of the brokers {', '.join(map(str, brokers))}"


def _rack(racks: Sequence[str]) -> str:
    return f"rack {racks[0]}" if len(racks) == 1 else f"one of the racks {', '.join(racks)}"
