"""The part of a replica that is the same in every role: its key, the voters, a summary of its log, pending effects.

Roles get this as their context. It decides nothing; `core.py` owns it. Every change of the log is made here, so that
the summary, the control state and the effect for the shell agree.
"""

from collections.abc import Sequence

from quire.raft.control_state import ControlHistory, ControlState
from quire.raft.effects import Append, Effect, HighWatermark, RestartLog, Send, SyncLog, Truncate
from quire.raft.errors import MetadataLogError
from quire.raft.log_summary import LogPosition, LogSummary
from quire.raft.messages import Batch, Message
from quire.raft.replicas import ReplicaKey, VoterSet
from quire.raft.settings import QuorumSettings
from quire.seams import Random

FIRST_BACKOFF_MS = 50


class Replica:
    __slots__ = (
        "bootstrap",
        "control",
        "effects",
        "elections_lost",
        "fetches",
        "high_watermark",
        "key",
        "log",
        "random",
        "settings",
        "stopping",
    )

    def __init__(
        self,
        key: ReplicaKey,
        control: ControlHistory,
        log: LogSummary,
        random: Random,
        settings: QuorumSettings,
        bootstrap: Sequence[int],
        snapshot_offset: int,
    ) -> None:
        self.key = key
        self.control = control
        self.bootstrap = list(bootstrap)
        """Peers that are only an address: servers that may know the leader, by the negative ids -2, -3, ..."""
        self.elections_lost = 0
        """Since there was last a leader."""
        self.fetches = 0
        """How many were sent, in all roles."""
        self.log = log
        self.high_watermark: int | None = max(log.start.offset, snapshot_offset) or None
        """At first the end of the newest snapshot, which holds only what is committed; a leader may know less."""
        self.random = random
        self.settings = settings
        self.stopping = False
        self.effects: list[Effect] = []

    # --- The quorum

    @property
    def voters(self) -> VoterSet:
        """The newest voters in the log, committed or not."""
        return self.control.voters

    @property
    def voters_in_log(self) -> bool:
        """False as long as only the snapshot that formatting wrote names the voters of a dynamic quorum."""
        return self.control.kraft_version < 1 or self.control.latest_offset >= 0 or self.log.start.offset > 0

    @property
    def is_voter(self) -> bool:
        return self.voters.includes(self.key)

    @property
    def is_only_voter(self) -> bool:
        return self.voters.is_only(self.key)

    @property
    def may_campaign(self) -> bool:
        """Whether to ask for votes: a voter may, and one whose removal may not be committed (dissertation, 4.2.2).

        The latter may be the only one with a log that the others must have; it does not vote for itself. A node with
        another directory than the voter's is not that voter: it may have forgotten votes and records.
        """
        if self.stopping or not self.log.is_cut_synced:
            return False
        possible = self.control.since(self.high_watermark or 0)
        return any(self.control.voters_of(state).includes(self.key) for state in possible)

    def is_behind(self, last: LogPosition) -> bool:
        """Whether a log that ends at `last` holds everything this one may have helped to commit (Raft 5.4.1)."""
        return self.log.last <= last

    # --- Effects

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    def send(self, to: int, message: Message) -> None:
        self.effects.append(Send(to, message))

    def next_fetch_number(self) -> int:
        self.fetches += 1
        return self.fetches

    def append(self, batch: Batch) -> None:
        self.log.append(batch.epoch, batch.base_offset, batch.next_offset)
        self.control.append(batch.base_offset, batch.control)
        self.emit(Append(batch))

    def sync_log(self) -> None:
        self.emit(SyncLog(self.log.end_offset, self.log.cuts))

    def truncate(self, offset: int) -> None:
        self._check_keeps_committed(offset)
        self.log.truncate(offset)
        self.control.truncate(offset)
        self.emit(Truncate(offset))
        self.sync_log()

    def restart_at(self, position: LogPosition, control: ControlState) -> None:
        """A snapshot replaces the log. Everything in it is committed."""
        self._check_keeps_committed(position.offset)
        self.log.restart_at(position)
        self.control.restart_at(control)
        self.emit(RestartLog(position))
        self.sync_log()
        self.advance_high_watermark(position.offset)

    def _check_keeps_committed(self, offset: int) -> None:
        """A leader has everything that is committed, unless its disk lost it. Then this copy may be the last one."""
        if self.high_watermark is not None and offset < self.high_watermark:
            raise MetadataLogError(
                f"the leader's metadata log agrees with this node's only up to offset {offset}, but records up to "
                f"{self.high_watermark} are committed: the leader lost committed records. Nothing is changed here; "
                "stop the controllers and restore the leader's metadata directory from a backup or from this node"
            )

    def advance_high_watermark(self, offset: int) -> bool:
        """Moves the high watermark forward, never back; True if it moved."""
        if self.high_watermark is not None and offset <= self.high_watermark:
            return False
        assert offset <= self.log.end_offset, "nothing is committed that is not in the log"
        self.high_watermark = offset
        self.emit(HighWatermark(offset))
        return True

    # --- Times

    def random_election_timeout_ms(self) -> int:
        timeout_ms = self.settings.election_timeout_ms
        return timeout_ms + self.random.below(max(timeout_ms, 1))

    def random_election_backoff_ms(self) -> int:
        """The wait of a voter that lost an election: short at first, because it delays the election of any leader."""
        longest_ms = FIRST_BACKOFF_MS << min(self.elections_lost, 10)
        return self.random.below(min(longest_ms, self.settings.election_backoff_max_ms) + 1)

    def quick_election_jitter_ms(self) -> int:
        return self.random.below(self.settings.quick_election_jitter_ms + 1)
