"""Which transactions may begin in a partition: their coordinator was asked, and has not ended them since.

Between the coordinator's yes and the first append of a transaction's records its end may come along (the producer gave
up, its transaction was aborted): appended after that, the records would stay open for ever. So a request takes an
`Admission` before it asks, a marker takes away the admissions of its producer, and what has none is not appended.
"""


class Admission:
    """For one producer; requests of it that ask at the same time share it."""

    __slots__ = ("bumps_epoch", "producer_epoch", "producer_id", "users")

    def __init__(self, producer_id: int, producer_epoch: int, bumps_epoch: bool) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.bumps_epoch = bumps_epoch
        """Transaction protocol 2: every transaction has a producer epoch of its own."""
        self.users = 0


class Admissions:
    """Of one partition. As long as the requests that asked for them, and so no more than these."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, Admission] = {}

    def take(self, producer_id: int, producer_epoch: int, *, bumps_epoch: bool) -> Admission:
        admission = self._by_producer.get(producer_id)
        if admission is None or admission.producer_epoch != producer_epoch:
            admission = self._by_producer[producer_id] = Admission(producer_id, producer_epoch, bumps_epoch)
        admission.users += 1
        return admission

    def give_back(self, admission: Admission) -> None:
        admission.users -= 1
        if admission.users == 0 and self.holds(admission):
            del self._by_producer[admission.producer_id]

    def holds(self, admission: Admission) -> bool:
        return self._by_producer.get(admission.producer_id) is admission

    def end(self, producer_id: int) -> None:
        """The producer's transaction has ended: who was admitted to it comes too late."""
        self._by_producer.pop(producer_id, None)
