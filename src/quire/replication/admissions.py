"""Which transactions may begin in a partition: their coordinator was asked, and has not ended them since.

Between the coordinator's yes and the first append of a transaction's records its end may come along (the producer gave
up, its transaction was aborted): appended after that, the records would stay open for ever. So a request takes an
`Admission` before it asks, a marker takes away the admissions to what it ends, and what has none is not appended.

An admission is for one epoch: neither a producer that has been replaced, and asks in vain, nor the end of the
transaction before can take it away.
"""


class Admission:
    """For one producer in one epoch; requests of it that ask at the same time share it."""

    __slots__ = ("bumps_epoch", "producer_epoch", "producer_id", "users")

    def __init__(self, producer_id: int, producer_epoch: int, bumps_epoch: bool) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.bumps_epoch = bumps_epoch
        """Transaction protocol 2: every transaction has a producer epoch of its own."""
        self.users = 0


class Admissions:
    """Of one partition. As long as the requests that asked for them, and so no more than these."""

    __slots__ = ("_by_epoch",)

    def __init__(self) -> None:
        self._by_epoch: dict[tuple[int, int], Admission] = {}
        """By producer id and epoch."""

    def take(self, producer_id: int, producer_epoch: int, *, bumps_epoch: bool) -> Admission:
        key = (producer_id, producer_epoch)
        admission = self._by_epoch.get(key)
        if admission is None:
            admission = self._by_epoch[key] = Admission(producer_id, producer_epoch, bumps_epoch)
        admission.users += 1
        return admission

    def give_back(self, admission: Admission) -> None:
        admission.users -= 1
        if admission.users == 0 and self.holds(admission):
            del self._by_epoch[_key(admission)]

    def holds(self, admission: Admission) -> bool:
        return self._by_epoch.get(_key(admission)) is admission

    def end(self, producer_id: int, marker_epoch: int, *, bumps_epoch: bool) -> None:
        """A transaction has ended: who was admitted to it comes too late.

        With `bumps_epoch` the marker has the epoch after that of what it ends: the one of the next transaction.
        """
        last_epoch = marker_epoch - 1 if bumps_epoch else marker_epoch
        for key in [key for key in self._by_epoch if key[0] == producer_id and key[1] <= last_epoch]:
            del self._by_epoch[key]


def _key(admission: Admission) -> tuple[int, int]:
    return admission.producer_id, admission.producer_epoch
