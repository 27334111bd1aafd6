"""A topic as `quire explain` sees it: the settings that decide what is promised, and which replicas are up now.

How many faults it survives follows from both. Nothing here asks a broker.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from quire.client.admin.topic_replicas import Replicas

NEVER = 2**63 - 1
"""Of `flush.messages` and `flush.ms`: the log is not flushed for this reason."""
MANY = 1_000_000


@dataclass(slots=True, frozen=True)
class Settings:
    min_insync_replicas: int = 1
    flush_messages: int = NEVER
    flush_ms: int = NEVER
    unclean_election: bool = False


class Survives(NamedTuple):
    """How many more brokers may fail, whichever they are. -1: too many have failed already."""

    writes: int
    """With acks=all, to every partition."""
    leaders: int
    """So that every partition has a leader, and nothing acknowledged is lost."""
    elections: int
    """So that most controllers are up: without them no leader is elected. Many, if no broker is a controller."""

    @property
    def writing(self) -> int:
        return min(self.writes, self.elections)

    @property
    def leading(self) -> int:
        return min(self.leaders, self.elections)


@dataclass(slots=True, frozen=True)
class TopicState:
    name: str
    settings: Settings
    partitions: tuple[Replicas, ...]
    racks: Mapping[int, str | None]
    """The rack of every registered broker."""
    up: frozenset[int]
    """The brokers that serve."""
    keeps_eligible: bool = True
    """Replicas that left the ISR while it was too small may lead (KIP-966)."""
    voters: frozenset[int] = frozenset()
    """The controllers; none if they did not answer."""

    @property
    def factors(self) -> tuple[int, int]:
        """The smallest and the largest number of replicas of a partition."""
        factors = [len(each.replicas) for each in self.partitions]
        return min(factors), max(factors)

    @property
    def required(self) -> int:
        """How many replicas of a partition must be in sync for acks=all: where they differ, the smallest number."""
        return min(self.settings.min_insync_replicas, self.factors[0])

    def required_of(self, partition: Replicas) -> int:
        return min(self.settings.min_insync_replicas, len(partition.replicas))

    def in_sync(self, partition: Replicas, without: Iterable[int] = ()) -> set[int]:
        """Members of the ISR that are up."""
        return {each for each in partition.isr if self._serves(each, partition)} - set(without)

    def may_lead(self, partition: Replicas, without: Iterable[int] = ()) -> set[int]:
        """Replicas that are up and have everything that was acknowledged."""
        eligible = (*partition.isr, *partition.elr) if self.keeps_eligible else partition.isr
        return {each for each in eligible if self._serves(each, partition)} - set(without)

    def _serves(self, broker: int, partition: Replicas) -> bool:
        return broker in self.up and broker not in partition.offline

    # --- What has failed

    @property
    def leaderless(self) -> list[int]:
        return [each.partition for each in self.partitions if each.leader is None]

    @property
    def refusing(self) -> list[int]:
        """Partitions with a leader where too few replicas are in sync for acks=all."""
        return [
            each.partition
            for each in self.partitions
            if each.leader is not None and len(self.in_sync(each)) < self.required_of(each)
        ]

    @property
    def brokers(self) -> list[int]:
        """The brokers that are down and have a replica."""
        return sorted({broker for each in self.partitions for broker in each.replicas})

    @property
    def down(self) -> list[int]:
        return [broker for broker in self.brokers if broker not in self.up]

    def lagging(self) -> Iterator[tuple[int, list[int]]]:
        """Each broker that is up, with the partitions where its replica is not in sync."""
        for broker in self.brokers:
            behind = [each.partition for each in self.partitions if broker in each.replicas and broker not in each.isr]
            if broker in self.up and behind:
                yield broker, behind

    # --- What may fail

    def survives(self) -> Survives:
        return Survives(
            min(max(-1, len(self.in_sync(each)) - self.required_of(each)) for each in self.partitions),
            min(len(self.may_lead(each)) - 1 for each in self.partitions),
            self._elections(),
        )

    def _elections(self) -> int:
        spare = self._spare_voters()
        return spare if self.voters and len(self.voters & self.up) > spare else MANY

    def _spare_voters(self) -> int:
        """How many controllers may fail. A controller that is not a broker counts as up."""
        return (len(self.voters) - 1) // 2 - len((self.voters & self.racks.keys()) - self.up)

    @property
    def all_racks(self) -> dict[str, set[int]]:
        """The racks, each with its brokers that are up."""
        racks: dict[str, set[int]] = {}
        for broker, rack in sorted(self.racks.items()):
            if rack is not None and broker in self.up:
                racks.setdefault(rack, set()).add(broker)
        return racks

    @property
    def named_racks(self) -> dict[str, set[int]]:
        """The racks that have a replica of the topic."""
        return {rack: brokers for rack, brokers in self.all_racks.items() if brokers & set(self.brokers)}

    def racks_for_writes(self) -> list[str]:
        """The racks whose loss leaves too few in-sync replicas of a partition that has enough now."""
        return self._racks_that_cost(lambda each, lost: len(self.in_sync(each, lost)) < self.required_of(each))

    def racks_for_leaders(self) -> list[str]:
        """The racks whose loss leaves a partition without a leader that has one now."""
        without_elections = [
            rack for rack, brokers in self.all_racks.items() if len(self.voters & brokers) > self._spare_voters() >= 0
        ]
        without_replicas = self._racks_that_cost(lambda each, lost: not self.may_lead(each, lost))
        return [each for each in self.named_racks if each in without_elections or each in without_replicas]

    def _racks_that_cost(self, fails: Callable[[Replicas, Iterable[int]], bool]) -> list[str]:
        return [
            rack
            for rack, brokers in self.named_racks.items()
            if any(fails(each, brokers) and not fails(each, ()) for each in self.partitions)
        ]
