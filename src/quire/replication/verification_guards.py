"""Verification guards (KIP-890): a transaction begins in a partition only after its coordinator has confirmed it.

The transaction may end between the coordinator's confirmation and the first append: its producer gave up, or it timed
out. Records appended after that would belong to a transaction that no coordinator ends. So a request acquires a guard
before it asks the coordinator, the marker that ends the transaction revokes the guard, and the leader refuses the first
batch of a transaction without a valid guard. Guards belong to a `LeaderRole` and end with it.

A guard is for one producer epoch. Neither a fenced producer, whose request the coordinator refuses, nor the end of the
previous transaction can revoke it.
"""


class VerificationGuard:
    """For one producer in one epoch. Concurrent requests of that producer share it; each must release it."""

    __slots__ = ("bumps_epoch", "issuer", "producer_epoch", "producer_id", "users")

    def __init__(self, issuer: "VerificationGuards", producer_id: int, producer_epoch: int, bumps_epoch: bool) -> None:
        self.issuer = issuer
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.bumps_epoch = bumps_epoch
        """Transaction protocol 2: every transaction has a producer epoch of its own."""
        self.users = 0

    @property
    def is_valid(self) -> bool:
        """Whether the transaction may still begin here."""
        return self.issuer.holds(self)

    def release(self) -> None:
        """The request is done with the guard; the last request removes it."""
        self.users -= 1
        if self.users == 0:
            self.issuer.remove(self)


class VerificationGuards:
    """The guards of one leadership. A guard lives as long as the requests that hold it, which bounds their number."""

    __slots__ = ("_by_epoch",)

    def __init__(self) -> None:
        self._by_epoch: dict[tuple[int, int], VerificationGuard] = {}
        """By producer id and epoch."""

    def acquire(self, producer_id: int, producer_epoch: int, *, bumps_epoch: bool) -> VerificationGuard:
        """The caller must release the guard."""
        key = (producer_id, producer_epoch)
        guard = self._by_epoch.get(key)
        if guard is None:
            guard = self._by_epoch[key] = VerificationGuard(self, producer_id, producer_epoch, bumps_epoch)
        guard.users += 1
        return guard

    def holds(self, guard: VerificationGuard) -> bool:
        return self._by_epoch.get(_key(guard)) is guard

    def remove(self, guard: VerificationGuard) -> None:
        if self.holds(guard):
            del self._by_epoch[_key(guard)]

    def revoke(self, producer_id: int, marker_epoch: int, *, bumps_epoch: bool) -> None:
        """A marker has ended the producer's transaction: revokes the guards of that transaction and of earlier ones.

        With `bumps_epoch` the marker has the epoch of the next transaction, one above that of the one it ends.
        """
        last_epoch = marker_epoch - 1 if bumps_epoch else marker_epoch
        for key in [key for key in self._by_epoch if key[0] == producer_id and key[1] <= last_epoch]:
            del self._by_epoch[key]

    def revoke_all(self) -> None:
        self._by_epoch.clear()


def _key(guard: VerificationGuard) -> tuple[int, int]:
    return guard.producer_id, guard.producer_epoch
