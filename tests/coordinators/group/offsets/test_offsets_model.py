"""Committed offsets against a model: commits, transactions and deletes in any order, with appends that fail, reloads of
whole and of compacted logs, and time that jumps.

An offset is that of the last commit in the log that was not in a transaction, or was in a committed one; a delete
removes all earlier commits.
"""

from collections.abc import Iterable
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from quire.coordinators.runtime.record import StateRecord
from quire.protocol.messages.group_records import OffsetCommitKey
from quire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from quire.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from quire.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from quire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.coordinators.compacted_log import compacted
from tests.coordinators.group.offsets.offsets_shard import OffsetsShard, caller

MINUTE_MS = 60_000
INTERVAL_MS = 2 * MINUTE_MS
RETENTION_MS = 10 * MINUTE_MS

GROUPS, PRODUCERS = ("g", "h"), (1, 2)
PARTITIONS = [("a", 0), ("a", 1)]
Key = tuple[str, str, int]
KEYS: list[Key] = [("g", "a", 0), ("g", "a", 1), ("h", "a", 0)]
"""Few, so that many operations affect each."""

keys = st.sampled_from(KEYS)
producers = st.sampled_from(PRODUCERS)
maybe_producers = st.sampled_from((None, *PRODUCERS))
offsets = st.integers(0, 1000)


class Commit(NamedTuple):
    key: Key
    offset: int
    time_ms: int
    producer_id: int | None = None


class Delete(NamedTuple):
    key: Key


class End(NamedTuple):
    producer_id: int
    committed: bool


Event = Commit | Delete | End


class Known(NamedTuple):
    """The result of a history."""

    committed: dict[Key, Commit]
    pending: dict[Key, list[Commit]]


def known(history: Iterable[Event]) -> Known:
    done = list(history)
    committed: dict[Key, Commit] = {}
    pending: dict[Key, list[Commit]] = {}
    for position, event in enumerate(done):
        if isinstance(event, Delete):
            committed.pop(event.key, None)
            pending.pop(event.key, None)
        elif isinstance(event, Commit):
            end = _end_of(event, done[position + 1 :])
            if event.producer_id is None or (end is not None and end.committed):
                committed[event.key] = event
            elif end is None:
                pending.setdefault(event.key, []).append(event)
    return Known(committed, pending)


def _end_of(commit: Commit, after: list[Event]) -> End | None:
    ends = (event for event in after if isinstance(event, End) and event.producer_id == commit.producer_id)
    return next(ends, None)


class OffsetsModel(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.shard = OffsetsShard(
            {"a": 2, "b": 1},
            {
                "offsets.retention.minutes": str(RETENTION_MS // MINUTE_MS),
                "offsets.retention.check.interval.ms": str(INTERVAL_MS),
            },
        )
        self.history: list[Event] = []
        """What is in the log, in its order."""
        self.held: list[Event] = []
        """Requests that are not known to be in the log."""

    # --- Requests

    def took(self, event: Event) -> None:
        (self.held if self.shard.holding else self.history).append(event)

    @rule(key=keys, offset=offsets, producer_id=maybe_producers)
    def commit(self, key: Key, offset: int, producer_id: int | None) -> None:
        if producer_id is None:
            self.commit_plainly(key, offset)
        else:
            self.commit_in_transaction(key, offset, producer_id)
        self.took(Commit(key, offset, self.shard.clock.now_ms(), producer_id))

    @rule(key=keys, offset=offsets, producer_id=maybe_producers)
    def commit_too(self, key: Key, offset: int, producer_id: int | None) -> None:
        """So that it happens more often than the rest."""
        self.commit(key, offset, producer_id)

    def commit_plainly(self, key: Key, offset: int) -> None:
        group, topic, partition = key
        asked = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata="")
        topics = [OffsetCommitRequestTopic(name=topic, partitions=[asked])]
        self.shard.commit_request(OffsetCommitRequest(group_id=group, topics=topics))

    def commit_in_transaction(self, key: Key, offset: int, producer_id: int) -> None:
        group, topic, partition = key
        asked = TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        topics = [TxnOffsetCommitRequestTopic(name=topic, partitions=[asked])]
        request = TxnOffsetCommitRequest(group_id=group, producer_id=producer_id, topics=topics)
        self.shard.run(lambda now_ms: self.shard.machine.offsets.commit_in_transaction(request, caller(3), now_ms))

    @rule(producer_id=producers, committed=st.booleans())
    def end_transaction(self, producer_id: int, committed: bool) -> None:
        self.shard.end_transaction(producer_id, 0, committed=committed)
        self.took(End(producer_id, committed))

    @rule(key=keys)
    def delete(self, key: Key) -> None:
        group, topic, partition = key
        if group not in self.shard.machine.groups:
            return
        now = known(self.everything)
        request = OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
                )
            ],
        )
        self.shard.run(lambda now_ms: self.shard.machine.offsets.delete(request))
        if key in now.committed or key in now.pending:
            self.took(Delete(key))

    # --- Pending and failed appends

    @rule(kept=st.one_of(st.none(), st.integers(0, 3)))
    def hold_or_fail(self, kept: int | None) -> None:
        if kept is None or not self.shard.holding:
            self.shard.holding = True
            return
        before = len(self.shard.log)
        self.shard.fail(kept=kept)
        self.shard.holding = False
        self.history += self.held[: len(self.shard.log) - before]
        self.held = []

    def let_go(self) -> None:
        self.shard.holding = False
        self.shard.commit()
        self.history += self.held
        self.held = []

    @rule(share=st.floats(0, 1), keep_tombstones=st.booleans())
    def compact_and_reload(self, share: float, keep_tombstones: bool) -> None:
        self.let_go()
        self.shard.log = compacted(self.shard.log, share, keep_tombstones=keep_tombstones)
        self.shard.reload()

    # --- Time

    @rule(minutes=st.integers(0, 25), jump_minutes=st.integers(-30, 30))
    def wait(self, minutes: int, jump_minutes: int) -> None:
        self.let_go()
        self.shard.clock.jump_wall(jump_minutes * MINUTE_MS)
        self.shard.on_append = self.expires
        self.shard.wait(minutes * MINUTE_MS)
        self.shard.on_append = None
        if minutes * MINUTE_MS >= INTERVAL_MS:
            now = known(self.history)
            oldest_ms = self.shard.clock.now_ms() - RETENTION_MS - INTERVAL_MS
            assert not [c for key, c in now.committed.items() if c.time_ms <= oldest_ms and key not in now.pending]

    def expires(self, record: StateRecord) -> None:
        """A record that no operation requested."""
        assert record.value is None
        now = known(self.history)
        if isinstance(record.key, OffsetCommitKey):
            key = (record.key.group, record.key.topic, record.key.partition)
            assert key not in now.pending
            assert now.committed[key].time_ms <= self.shard.clock.now_ms() - RETENTION_MS
            self.history.append(Delete(key))

    # --- Invariants

    @property
    def everything(self) -> list[Event]:
        return self.history + self.held

    @invariant()
    def offsets_are_what_was_committed_last(self) -> None:
        now = known(self.everything)
        for group in GROUPS:
            asked = [OffsetFetchRequestTopics(name=topic, partition_indexes=[each]) for topic, each in PARTITIONS]
            request = OffsetFetchRequestGroup(group_id=group, topics=asked)
            for require_stable in (False, True):
                result = self.shard.machine.offsets.fetch(request, caller(9), require_stable=require_stable)
                for (topic, partition), answer in zip(PARTITIONS, result.response.topics, strict=True):  # type: ignore[union-attr]
                    key = (group, topic, partition)
                    (told,) = answer.partitions
                    if require_stable and key in now.pending:
                        assert (told.committed_offset, told.error_code) == (-1, 88)
                    else:
                        commit = now.committed.get(key)
                        assert (told.committed_offset, told.error_code) == (commit.offset if commit else -1, 0)

    @invariant()
    def groups_with_offsets_exist(self) -> None:
        now = known(self.everything)
        for group, *_ in [*now.committed, *now.pending]:
            assert group in self.shard.machine.groups


TestOffsetsModel = OffsetsModel.TestCase
TestOffsetsModel.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
