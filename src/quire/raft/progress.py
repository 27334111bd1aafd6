"""How far each replica of a leader's log is, and what that commits.

Only the leader keeps this. A voter's end offset is what it has on disk: a follower reports it as the offset that it
fetches from, and the leader counts what it has synced itself. Replicas with a voter's id but another directory are
observers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from quire.raft.replicas import ReplicaKey, VoterSet

OBSERVER_FORGOTTEN_AFTER_MS = 300_000
MAX_OBSERVERS = 2_000
"""More are answered, but not remembered."""


@dataclass(slots=True)
class ReplicaProgress:
    """The last fetch of one replica. Times are the machine's; `-inf` if it never fetched."""

    key: ReplicaKey
    end_offset: int = -1
    fetched_at_ms: float = -inf
    heard_at_ms: float = -inf
    """The last fetch of any kind, for check quorum: also of a snapshot, or of a log that diverges."""
    caught_up_at_ms: float = -inf
    _leader_end_at_fetch: int = -1

    def fetched(self, offset: int, leader_end_offset: int, now_ms: float) -> None:
        """The replica fetched from `offset`: everything before it is durable there."""
        if offset >= leader_end_offset:
            self.caught_up_at_ms = now_ms
        elif offset >= self._leader_end_at_fetch >= 0:
            self.caught_up_at_ms = max(self.caught_up_at_ms, self.fetched_at_ms)
        self.end_offset = max(self.end_offset, offset)
        self.fetched_at_ms = now_ms
        self._leader_end_at_fetch = leader_end_offset


class QuorumProgress:
    """The progress of all voters, and of observers that fetched lately, by node id."""

    __slots__ = ("_own", "observers", "voters")

    def __init__(self, own: ReplicaKey, voters: VoterSet, now_ms: float) -> None:
        self._own = own
        self.voters: dict[int, ReplicaProgress] = {}
        self.observers: dict[int, ReplicaProgress] = {}
        self.set_voters(voters, now_ms)

    def set_voters(self, voters: VoterSet, now_ms: float) -> None:
        """A replica keeps what it has reached when it becomes a voter, or is one no longer.

        A new voter counts as heard now: the time of an observer's fetches is not kept for check quorum.
        """
        known = [*self.voters.values(), *self.observers.values()]
        voters_before, self.voters = self.voters, {}
        for voter in voters:
            progress = _find(voters_before.values(), voter.key)
            if progress is None:
                progress = _find(self.observers.values(), voter.key) or ReplicaProgress(voter.key)
                progress.heard_at_ms = now_ms
            progress.key = voter.key
            self.voters[voter.key.id] = progress
        others = [each for each in known if self.voter(each.key) is None and each.key != self._own]
        self.observers = {each.key.id: each for each in others}

    def voter(self, key: ReplicaKey) -> ReplicaProgress | None:
        """The voter that `key` is; None for an observer."""
        voter = self.voters.get(key.id)
        return voter if voter is not None and voter.key.matches(key) else None

    def heard(self, key: ReplicaKey, now_ms: float) -> None:
        """A voter fetches something, so it follows this leader; nothing else says so (check quorum)."""
        voter = self.voter(key)
        if voter is not None:
            voter.heard_at_ms = now_ms

    def synced(self, offset: int) -> None:
        """The leader's own log is on disk up to `offset`."""
        own = self.voter(self._own)
        if own is not None:
            own.end_offset = offset

    def fetched(self, key: ReplicaKey, offset: int, leader_end_offset: int, now_ms: float) -> None:
        voter = self.voter(key)
        if voter is not None:
            voter.fetched(offset, leader_end_offset, now_ms)
        elif key.id >= 0:
            forgotten = now_ms - OBSERVER_FORGOTTEN_AFTER_MS
            self.observers = {id_: seen for id_, seen in self.observers.items() if seen.fetched_at_ms > forgotten}
            observer = self.observers.get(key.id)
            if observer is None or observer.key != key:
                observer = ReplicaProgress(key)
                if len(self.observers) < MAX_OBSERVERS:
                    self.observers[key.id] = observer
            observer.fetched(offset, leader_end_offset, now_ms)

    def has_caught_up(self, key: ReplicaKey, now_ms: float) -> bool:
        """Whether an observer fetches, and has had the whole log at some time: it can become a voter."""
        observer = self.observers.get(key.id)
        if observer is None or observer.key != key or observer.caught_up_at_ms == -inf:
            return False
        return observer.fetched_at_ms > now_ms - OBSERVER_FORGOTTEN_AFTER_MS

    def committed_offset(self, voters: VoterSet) -> int:
        return committed_offset(voters, {id_: voter.end_offset for id_, voter in self.voters.items()})

    def majority_heard_at_ms(self, voters: VoterSet) -> float:
        """When a majority had last fetched; the leader counts itself, if it is a voter."""
        heard = sorted((self.voters[id_].heard_at_ms for id_ in voters.others(self._own)), reverse=True)
        needed = voters.majority - (1 if voters.includes(self._own) else 0)
        return heard[needed - 1] if needed else inf


def _find(replicas: Iterable[ReplicaProgress], key: ReplicaKey) -> ReplicaProgress | None:
    return next((each for each in replicas if each.key.matches(key)), None)


def committed_offset(voters: VoterSet, end_offsets: dict[int, int]) -> int:
    """The offset a majority of the voters has reached."""
    reached = sorted((end_offsets.get(id_, -1) for id_ in voters.ids), reverse=True)
    return reached[voters.majority - 1]
