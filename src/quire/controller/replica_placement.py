"""Which brokers hold the replicas of new partitions, unless the request names them.

Replicas are assigned to racks in turn, and within a rack to its brokers in turn; each partition starts one further. So
the replicas of a partition are on as many racks as possible, and leaders and replicas are spread evenly. The first
partition starts at a random place. A fenced broker gets a replica only if there are too few others, and never the first
one, which leads.
"""

from collections.abc import Iterable

from quire.metadata.image import BrokerImage
from quire.protocol.errors import ApiError, ErrorCode
from quire.seams import Random


def place_replicas(
    brokers: Iterable[BrokerImage], partition_count: int, replication_factor: int, random: Random
) -> list[list[int]]:
    """The replicas of each new partition, the preferred leader first."""
    usable = sorted((each for each in brokers if _can_take(each)), key=lambda broker: broker.broker_id)
    _check(usable, replication_factor)
    placer = _Placer(usable, random)
    return [placer.place(replication_factor) for _ in range(partition_count)]


def _can_take(broker: BrokerImage) -> bool:
    all_cordoned = bool(broker.log_dirs) and all(each in (broker.cordoned_log_dirs or ()) for each in broker.log_dirs)
    return not broker.in_controlled_shutdown and not all_cordoned


def _check(brokers: list[BrokerImage], replication_factor: int) -> None:
    if replication_factor > len(brokers):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"a replication factor of {replication_factor} cannot be reached by {len(brokers)} "
            f"{'broker' if len(brokers) == 1 else 'brokers'}",
        )
    if all(broker.fenced for broker in brokers):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"a replication factor of {replication_factor} cannot be reached: all brokers are fenced",
        )


class _Rack:
    """The brokers of a rack, round robin: one cycle for leaders, another for followers.

    With a single cycle for both, two brokers and two replicas would give every leadership to the same one.
    """

    def __init__(self, brokers: list[BrokerImage], random: Random) -> None:
        self._brokers = brokers
        self._leads_next = self._follows_next = random.below(len(brokers))

    def take(self, taken: list[int], *, fenced: bool) -> int | None:
        """The next broker of this kind that is not taken yet; the first one to be taken leads."""
        start = self._follows_next if taken else self._leads_next
        for position in range(start, start + len(self._brokers)):
            broker = self._brokers[position % len(self._brokers)]
            if broker.fenced == fenced and broker.broker_id not in taken:
                if taken:
                    self._follows_next = position + 1
                else:
                    self._leads_next = position + 1
                return broker.broker_id
        return None


class _Placer:
    def __init__(self, brokers: list[BrokerImage], random: Random) -> None:
        by_rack: dict[str, list[BrokerImage]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack or "", []).append(broker)
        self._racks = [_Rack(by_rack[name], random) for name in sorted(by_rack)]
        self._first = random.below(len(self._racks))

    def place(self, count: int) -> list[int]:
        replicas: list[int] = []
        rack = self._first
        self._first += 1
        for fenced in (False, True):
            passed_over = 0
            while len(replicas) < count and passed_over < len(self._racks):
                broker_id = self._racks[rack % len(self._racks)].take(replicas, fenced=fenced)
                rack += 1
                if broker_id is None:
                    passed_over += 1
                else:
                    passed_over = 0
                    replicas.append(broker_id)
        assert len(replicas) == count
        return replicas
