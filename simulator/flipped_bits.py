"""Where bits may flip on a disk: in closed segments of one replica, while its node is down.

Only one copy of a batch is ever damaged. The node, and all others that have the partition, have flushed the whole
segment and know that it is committed; and each partition is damaged once, on one machine. So everything that is
acknowledged must stay readable, and no reader may ever see the damaged batch.
"""

from collections.abc import Container, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from quire.protocol.records import walk_batches
from quire.protocol.records.batch import CHECKED_FROM
from simulator.machine import Machine
from simulator.random import SimRandom
from simulator.white_box.replica_hosts import Host, Key, hosts_of

MOST_AT_ONCE = 5


class Spot(NamedTuple):
    path: str
    position: int
    """Of a byte in the file."""
    bit: int


class FlippedBits:
    def __init__(
        self,
        machines: Sequence[Machine],
        random: SimRandom,
        moving: Container[tuple[str, int]],
        damaged: dict[tuple[str, int], None],
    ) -> None:
        """`moving` are the partitions of which the replicas may change; `damaged` gets those that are damaged."""
        self._machines = machines
        self._random = random
        self._moving = moving
        self._all_damaged = damaged
        self._damaged: dict[Key, None] = {}

    def choose(self, victim: Machine) -> list[Spot]:
        """Some spots on the disk of a machine whose node runs, each in another partition."""
        found: dict[Key, list[str]] = {}
        for key, path in self._segments(victim):
            found.setdefault(key, []).append(path)
        keys = sorted(found, key=lambda _: self._random.below(1 << 30))[: 1 + self._random.below(MOST_AT_ONCE)]
        self._damaged |= dict.fromkeys(keys)
        for partition in (host.partition for key in keys for host in hosts_of(self._machines)[key].values()):
            self._all_damaged[partition.topic, partition.index] = None
        return [self._spot(victim, self._random.choice(found[key])) for key in keys]

    def _spot(self, victim: Machine, path: str) -> Spot:
        batches = walk_batches(victim.disk.peek(path))
        batch = self._random.choice(batches)
        position = batch.position + CHECKED_FROM + self._random.below(batch.size - CHECKED_FROM)
        return Spot(path, position, self._random.below(8))

    def _segments(self, victim: Machine) -> Iterator[tuple[Key, str]]:
        hosts = hosts_of(self._machines)
        number = self._machines.index(victim) + 1
        node = victim.node
        for key, replicas in hosts.items():
            image = None if node is None else node.image.partition(*key)
            if number not in replicas or image is None or len(image.replicas) == 1 or key in self._damaged:
                continue
            if not all(each in replicas for each in image.replicas):
                continue
            copies = [replicas[each] for each in image.replicas]
            partition = replicas[number].partition
            if (partition.topic, partition.index) in self._moving:
                continue
            for segment, following in pairwise(partition.log.segments):
                everywhere = all(_surely_has(copy, segment.base_offset, following.base_offset) for copy in copies)
                if everywhere and segment.size and victim.disk.is_synced(segment.path):
                    yield key, segment.path


def _surely_has(copy: Host, start_offset: int, end_offset: int) -> bool:
    log = copy.partition.log
    committed = min(copy.partition.high_watermark, log.recovery_point)
    return log.start_offset <= start_offset and end_offset <= committed
