"""What a replica is whatever role it plays: its key, its voters, its log in numbers, and the effects it has asked for.

Roles get this as their context. It decides nothing; `core.py` owns it.
"""

from quire.raft.effects import Effect, HighWatermark, Send
from quire.raft.log_summary import LogPosition, LogSummary
from quire.raft.messages import Message
from quire.raft.replicas import ReplicaKey, VoterSet
from quire.raft.settings import QuorumSettings
from quire.seams import Random


class Replica:
    __slots__ = (
        "effects",
        "high_watermark",
        "key",
        "log",
        "random",
        "settings",
        "stopping",
        "voters",
        "voters_in_log",
    )

    def __init__(
        self,
        key: ReplicaKey,
        voters: VoterSet,
        log: LogSummary,
        random: Random,
        settings: QuorumSettings,
        *,
        voters_in_log: bool,
    ) -> None:
        self.key = key
        self.voters = voters
        self.voters_in_log = voters_in_log
        """False as long as only the snapshot of the formatting says who votes."""
        self.log = log
        self.high_watermark: int | None = None
        self.random = random
        self.settings = settings
        self.stopping = False
        self.effects: list[Effect] = []

    @property
    def is_voter(self) -> bool:
        return self.voters.includes(self.key)

    @property
    def is_only_voter(self) -> bool:
        return self.voters.is_only(self.key)

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    def send(self, to: int, message: Message) -> None:
        self.effects.append(Send(to, message))

    def is_behind(self, last: LogPosition) -> bool:
        """Whether a log that ends at `last` holds everything this one may have helped to commit (Raft 5.4.1)."""
        return self.log.last <= last

    def advance_high_watermark(self, offset: int) -> bool:
        """Moves the high watermark forward, never back; True if it moved."""
        if self.high_watermark is not None and offset <= self.high_watermark:
            return False
        assert offset <= self.log.end_offset, "nothing is committed that is not in the log"
        self.high_watermark = offset
        self.emit(HighWatermark(offset))
        return True

    def random_election_timeout_ms(self) -> int:
        timeout_ms = self.settings.election_timeout_ms
        return timeout_ms + self.random.below(max(timeout_ms, 1))
