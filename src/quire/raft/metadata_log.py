"""The metadata log of one node: the consensus core, its folder on disk, and the listener to what is committed.

`MetadataLog` drives `RaftCore`: it passes on every event, has the effects carried out, and sets the timer. To its
callers it is an ordered log: `append` writes records as one atomic batch and returns their offset at once. The listener
is called with every batch that is committed, with this node's leadership after everything that was committed before it,
and for a snapshot when one is due. Appends made while the disk is busy share its next sync, which is all the batching
that a metadata log needs.

    effects, in order                   EffectQueue     the machine's messages to other replicas    Outbox
    what each effect does               EffectRunner    requests of others, until they are answered Inbox
    committed batches to the listener   Delivery        a snapshot of the leader                    SnapshotFetch
    snapshots of the committed state    SnapshotTaker   the next deadline of the machine            DeadlineTimer

A disk that fails, or a record that this node does not support, ends it: `failed` is called once, and nothing is
committed after that.
"""

import logging
from collections.abc import Callable, Mapping, Sequence

from quire.address import Address
from quire.pending import Pending, completed
from quire.protocol.errors import ApiError, ErrorCode
from quire.raft import messages
from quire.raft.addresses import Addresses
from quire.raft.control_state import NO_VOTERS
from quire.raft.core import QuorumView, RaftCore
from quire.raft.deadline_timer import DeadlineTimer
from quire.raft.delivery import Delivery
from quire.raft.effect_queue import EffectQueue
from quire.raft.effect_runner import EffectRunner
from quire.raft.effects import (
    ChangeVoters,
    CheckLeadership,
    ConnectionLost,
    Effect,
    LogCleaned,
    LogSynced,
    Propose,
    RaftEvent,
    Received,
    Resign,
    SnapshotRequested,
    SyncLog,
    Tick,
    Unreachable,
)
from quire.raft.errors import MetadataLogError
from quire.raft.inbox import Inbox, Reply
from quire.raft.log_listener import LogListener, ReportedLeader
from quire.raft.log_store import CommittedBatch, LogStore
from quire.raft.log_summary import LogPosition
from quire.raft.outbox import Outbox, PeerResponse
from quire.raft.peers import NoPeers, Peers
from quire.raft.refusals import not_leader
from quire.raft.replicas import Endpoint, ReplicaKey, VoterSet
from quire.raft.settings import MetadataLogSettings
from quire.raft.snapshot_fetch import SnapshotFetch
from quire.raft.snapshot_taker import SnapshotTaker, VersionedRecord
from quire.raft.voter_changes import VoterChange
from quire.raft.wire import LeaderEndpoint
from quire.raft.wire.fetch_snapshot import SnapshotPart, SnapshotPartRequest
from quire.raft.written_batches import Proposal
from quire.seams import Clock, Disk, Jobs, Random
from quire.storage.errors import is_full

log = logging.getLogger("quire.raft")


class MetadataLog:
    def __init__(
        self,
        directory: str,
        key: ReplicaKey,
        listener: LogListener,
        *,
        clock: Clock,
        random: Random,
        disk: Disk,
        jobs: Jobs,
        failed: Callable[[Exception], None],
        settings: MetadataLogSettings | None = None,
        static_voters: VoterSet | None = None,
        cluster_id: str = "",
        peers: Peers | None = None,
        addresses: Addresses | None = None,
        own_endpoints: tuple[Endpoint, ...] = (),
    ) -> None:
        """`static_voters` are those of `controller.quorum.voters`, for a log that names none.

        `own_endpoints` are where this node listens for other controllers.
        """
        self.own_endpoints = own_endpoints
        self._key = key
        self._listener = listener
        self._clock = clock
        self._random = random
        self._failed = failed
        self._settings = settings or MetadataLogSettings()
        self._static_voters = static_voters
        self._directory = directory
        self._store = LogStore(disk, jobs, directory, self._settings, self._not_synced)
        self._core: RaftCore | None = None
        self._addresses = addresses or Addresses()
        self._outbox = Outbox(self, cluster_id, peers or NoPeers(), self._addresses, clock=clock)
        self._inbox = Inbox()
        self._delivery = Delivery(self._store, clock, self._deliver, self._delivered, self._fail)
        self._snapshots = SnapshotTaker(
            self._store,
            clock,
            self._settings,
            content=listener.snapshot_content,
            trimmed=self._trimmed,
            failed=self._fail,
        )
        self._snapshot_fetch = SnapshotFetch(
            key, self._step, self._outbox, disk, jobs, self._store.path, listener.prepare_snapshot, self._fail
        )
        self._reported_leader = ReportedLeader(key.id, listener)
        self._runner = EffectRunner(
            key.id,
            clock,
            self._store,
            core=lambda: self._raft,
            synced=self._synced,
            delivery=self._delivery,
            inbox=self._inbox,
            outbox=self._outbox,
            snapshot_fetch=self._snapshot_fetch,
            reported_leader=self._reported_leader,
        )
        self._effects = EffectQueue(
            clock, directory, carry_out=self._runner.carry_out, then=self._set_timer, failed=self._fail
        )
        self._timer = DeadlineTimer(clock, self._tick)
        self._stopped = False

    # --- State

    @property
    def is_leader(self) -> bool:
        """Whether appends are accepted: this node leads and its listener knows."""
        return not self._stopped and self._reported_leader.is_this_node(self._raft)

    @property
    def leader_id(self) -> int | None:
        return self._raft.leader_id

    @property
    def is_taken_for_leader(self) -> bool:
        """Whether others say that this node leads the epoch, which it does not: it lost its disk, or has a double."""
        return self._raft.is_taken_for_leader

    @property
    def unanswered(self) -> Mapping[Address, str]:
        """Controllers that the last request did not reach or that refused it, and why."""
        return self._outbox.unanswered

    @property
    def leader_endpoint(self) -> LeaderEndpoint | None:
        """Where the leader listens for other nodes; None if there is none, or its address is not known."""
        leader_id = self.leader_id
        if leader_id is None:
            return None
        if leader_id == self._key.id:
            own = self._addresses.choose(self.own_endpoints)
            return None if own is None else LeaderEndpoint(leader_id, own.host, own.port)
        address = self.address_of(leader_id)
        return None if address is None else LeaderEndpoint(leader_id, address.host, address.port)

    @property
    def epoch(self) -> int:
        return self._raft.epoch

    @property
    def key(self) -> ReplicaKey:
        return self._key

    @property
    def high_watermark(self) -> int:
        """Everything below is committed and the listener has it; 0 before the first commit."""
        return self._delivery.offset

    @property
    def next_offset(self) -> int:
        """The offset of the first record of the next append."""
        return self._raft.log.end_offset

    @property
    def start_offset(self) -> int:
        return self._raft.log.start.offset

    @property
    def voters(self) -> VoterSet:
        return self._raft.voters

    @property
    def kraft_version(self) -> int:
        return self._store.control.kraft_version

    @property
    def waits_for_room(self) -> bool:
        """Whether a write waits until the disk is no longer full."""
        return self._effects.waits_for_room

    @property
    def has_followers(self) -> bool:
        """Whether another node copies the log."""
        return len(self._raft.voters) > 1 or bool(self._raft.view().observers)

    def view(self) -> QuorumView:
        """The quorum; times are of `Clock.monotonic_ms`."""
        return self._raft.view()

    @property
    def _raft(self) -> RaftCore:
        assert self._core is not None, "open the log first"
        return self._core

    # --- Starting and stopping

    def open(self) -> None:
        """Blocks while the files are read. The listener gets what is known to be committed at once, the rest later."""
        summary = self._store.open(self._clock.now_ms())
        self._check_voters()
        if self._store.snapshot is not None:
            # Nothing waits for the event loop yet: the listeners answer when the log is open.
            self._delivery.restart_at(self._store.snapshot.position.offset)
            self._listener.prepare_snapshot(self._store.snapshot)()
        self._store.history.static_voters = self._static_voters or NO_VOTERS
        self._core = RaftCore(
            self._key,
            self._store.history,
            summary,
            self._random,
            self._settings.quorum,
            self._addresses.bootstrap_ids,
            snapshot_offset=self._delivery.offset,
        )
        log.debug(
            "metadata log opened path=%s start=%d end=%d epoch=%d",
            self._directory,
            summary.start.offset,
            summary.end_offset,
            summary.last.epoch,
        )
        self._effects.add(self._core.start(self._store.read_election(), self._clock.monotonic_ms()))

    def _check_voters(self) -> None:
        if self._store.control.voters is None and self._static_voters is None and not self._addresses.bootstrap_ids:
            raise MetadataLogError(
                f"{self._directory} does not say who votes and controller.quorum.voters is not set; "
                "format it with `quire storage format --standalone`"
            )

    def resign(self) -> None:
        """Leaves the lead to another voter, if there is one, and never leads again; continues as a follower."""
        if not self._stopped and self._core is not None and self._core.voters.others(self._key):
            self._step(Resign())

    def close(self) -> None:
        """Leaves the quorum, makes everything durable and closes the files. The listener is no longer called."""
        if self._stopped:
            return
        if self._core is not None:
            self._step(Resign())
        self._stop()
        try:
            self._store.close()
        except OSError as error:
            # What is committed is on disk already; the next start scans the rest, as after a crash.
            log.error("metadata log not closed cleanly path=%s error=%s", self._directory, error)

    def _stop(self) -> None:
        self._stopped = True
        self._timer.cancel()
        self._effects.stop()
        self._delivery.stop()
        self._snapshots.stop()
        self._snapshot_fetch.stop()
        self._outbox.close()
        stopping = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this controller is stopping")
        self._inbox.refuse_all(stopping)
        self._runner.voter_changes.answer_all(stopping)
        self._runner.leadership_checks.answer_all(False)

    def _fail(self, error: Exception) -> None:
        if self._stopped:
            return
        log.error("metadata log failed path=%s error=%s", self._directory, error)
        self._stop()
        self._failed(error)

    # --- Appending

    def append(self, records: Sequence[VersionedRecord], now_ms: int) -> int:
        """Writes the records as one batch, all committed or none, and returns the offset of the first.

        `now_ms` becomes their timestamp. NotLeaderError if this node does not lead.
        """
        assert records, "a batch has at least one record"
        base_offset = self.next_offset
        self._step(Propose(len(records), Proposal(records, now_ms)))
        return base_offset

    def change_voters(self, change: VoterChange, *, until_committed: bool = True) -> Pending[ApiError]:
        """Changes the voters or the version of KRaft; the code of the result is NONE if that is done."""
        request_id, changed = self._runner.voter_changes.add()
        self._step(ChangeVoters(request_id, change, until_committed))
        return changed

    def check_upgrade(self, kraft_version: int) -> None:
        """ApiError if `change_voters` would refuse to upgrade the version of KRaft now."""
        self._raft.check_upgrade(kraft_version)

    def check_leadership(self) -> Pending[bool]:
        """Whether this node still led when this was called: if so, no other had committed anything after its log.

        A majority of the voters must confirm it. A leader without a majority gets False when its term ends.
        """
        if self._stopped:
            return completed(False)
        request_id, checked = self._runner.leadership_checks.add()
        self._step(CheckLeadership(request_id))
        return checked

    # --- Other replicas

    def requested(self, message: messages.Message) -> Pending[Reply | ApiError]:
        """A request of another replica; its answer may come much later."""
        if self._stopped:
            return completed(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this controller is stopping"))
        number, answer = self._inbox.add()
        self._step(Received(number, message))
        return answer

    def leader_listens(self, leader_id: int, epoch: int, endpoints: Sequence[Endpoint]) -> None:
        """What the leader of an epoch says of its own addresses."""
        chosen = self._addresses.choose(endpoints)
        if chosen is not None:
            self._addresses.learn(LeaderEndpoint(leader_id, chosen.host, chosen.port), epoch)

    def address_of(self, node_id: int) -> Address | None:
        leads_epoch = self.epoch if node_id == self.leader_id else None
        return self._addresses.of(node_id, self.voters, leads_epoch)

    def answered(self, peer: int, answer: PeerResponse) -> None:
        if not self._stopped:
            self._step(Received(peer, answer))

    def lost(self, peer: int, fetch: int | None, *, connection_lost: bool) -> None:
        if connection_lost and not self._stopped:
            self._step(ConnectionLost(peer))
        if not self._stopped:
            self._step(Unreachable(peer, fetch))

    # --- The machine and its effects

    def _step(self, event: RaftEvent) -> list[Effect]:
        """Returns the effects, which are carried out now or when there is room on the disk."""
        try:
            effects = self._raft.step(event, self._clock.monotonic_ms())
        except MetadataLogError as error:
            self._fail(error)
            return []
        self._reported_leader.end_term(self._raft)
        self._effects.add(effects)
        return effects

    def _tick(self) -> None:
        self._step(Tick())

    def _synced(self, offset: int, cuts: int) -> None:
        if not self._stopped:
            self._step(LogSynced(offset, cuts))

    def _not_synced(self, error: Exception) -> None:
        """On a full disk it was not the log itself, which got its room when it was written."""
        if isinstance(error, OSError) and is_full(error) and not self._stopped:
            self._effects.repeat(SyncLog(self.next_offset, self._raft.log.cuts), error)
        else:
            self._fail(error)

    def _set_timer(self) -> None:
        if not self._stopped:
            self._timer.set(self._raft.deadline_ms)

    # --- Calling the listener

    def _deliver(self, batches: list[CommittedBatch]) -> None:
        self._snapshots.committed(sum(batch.size_bytes for batch in batches))
        self._listener.committed(batches)

    def _delivered(self) -> None:
        """The listener has everything that is committed."""
        self._reported_leader.delivered(self._raft, self._delivery.offset)
        self._snapshots.take_if_due()

    # --- Snapshots

    def take_snapshot(self) -> None:
        """Writes the committed state in a job, then deletes what it replaces; nothing while one is being written."""
        self._snapshots.take()

    def _trimmed(self, start: LogPosition) -> None:
        if start.offset > self._raft.log.start.offset:
            self._step(LogCleaned(start))

    def snapshot_part(self, asked: SnapshotPartRequest) -> SnapshotPart:
        """For a follower that fetches a snapshot from this leader."""
        raft = self._raft
        if self._stopped or not raft.is_leader or asked.epoch != raft.epoch:
            error = not_leader(asked.epoch, raft.epoch)
        else:
            self._step(SnapshotRequested(asked.replica))
            found = self._store.read_snapshot_part(asked.position, asked.offset, asked.max_bytes)
            if found is not None and asked.offset < found[0]:
                return SnapshotPart(raft.epoch, raft.leader_id, *found)
            error = ErrorCode.SNAPSHOT_NOT_FOUND if found is None else ErrorCode.POSITION_OUT_OF_RANGE
        return SnapshotPart(raft.epoch, raft.leader_id, error=error)
