"""A log compared with a list of batches: after the same operations in any order, they are equal.

Stops are clean or kills; a kill loses nothing that was written. test_log_crashes.py tests power losses.
"""

from bisect import bisect_left
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from quire.protocol.records.batch import walk_batches
from quire.storage.append_info import AppendInfo
from quire.storage.log_config import LogConfig
from quire.storage.producers.end_marker import build_end_marker
from quire.storage.producers.producer_state import REMEMBERED_BATCHES
from quire.storage.scanning.range_check import read_checked
from simulator.disk import SimDisk
from tests.storage.batches import batch, open_log, read, replicate

CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=180, segment_index_bytes=48, segment_ms=50)
PRODUCERS = (1, 2)
TRANSACTIONAL = (3, 4, 5)
NO_TRANSACTION = -1


@dataclass(frozen=True)
class Written:
    """A batch in the model."""

    data: bytes
    first: int
    last: int
    epoch: int
    timestamp: int
    producer_id: int
    sequence: int
    is_transactional: bool
    aborts: bool | None
    """None for records; else whether it is the marker that aborts, or the one that commits."""


class Transactions:
    """The transactions in a list of batches."""

    def __init__(self, batches: list[Written]) -> None:
        self.open: dict[int, int] = {}
        self.aborted: list[tuple[int, int, int]] = []
        """Producer, first offset, and the marker's."""
        for written in batches:
            if written.aborts is None and written.is_transactional:
                self.open.setdefault(written.producer_id, written.first)
            elif written.aborts is not None:
                first = self.open.pop(written.producer_id, None)
                if first is not None and written.aborts:
                    self.aborted.append((written.producer_id, first, written.last))


class LogModel(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.disk = SimDisk()
        self.log = open_log(self.disk, CONFIG)
        self.batches: list[Written] = []
        self.start = 0
        self.end = 0
        self.epoch = 0
        self.time = 1000
        self.sequences = dict.fromkeys((*PRODUCERS, *TRANSACTIONAL), 0)

    def append(self, data: bytearray) -> AppendInfo:
        return self.log.append(data, walk_batches(data), self.epoch, self.time)

    def took(self, data: bytes | bytearray, aborts: bool | None = None) -> None:
        for header in walk_batches(data):
            self.batches.append(
                Written(
                    bytes(data[header.position : header.end]),
                    header.base_offset,
                    header.last_offset,
                    header.leader_epoch,
                    header.max_timestamp,
                    header.producer_id,
                    header.base_sequence,
                    header.is_transactional,
                    aborts,
                )
            )
            self.end = header.next_offset

    @rule(
        sizes=st.lists(st.integers(0, 120), min_size=1, max_size=3),
        batches=st.integers(1, 3),
        later=st.integers(-5, 30),
    )
    def append_some(self, sizes: list[int], batches: int, later: int) -> None:
        self.time = max(0, self.time + later)
        data = bytearray().join(batch(*map(bytes, sizes), timestamp=self.time) for _ in range(batches))
        if len(data) > CONFIG.segment_bytes:
            return
        info = self.append(data)
        assert info.base_offset == self.end
        for header in walk_batches(data):
            assert header.leader_epoch == self.epoch
        self.took(data)
        assert info.last_offset == self.end - 1

    @rule(producer_id=st.sampled_from(PRODUCERS), count=st.integers(1, 3))
    def append_from_a_producer(self, producer_id: int, count: int) -> None:
        sequence = self.sequences[producer_id]
        data = batch(*[b"v"] * count, timestamp=self.time, producer_id=producer_id, producer_epoch=0, sequence=sequence)
        (header,) = walk_batches(data)
        assert self.log.check_producer(header) is None
        self.append(data)
        self.took(data)
        self.sequences[producer_id] = sequence + count

    @rule(producer_id=st.sampled_from(TRANSACTIONAL), size=st.integers(0, 150))
    def append_in_a_transaction(self, producer_id: int, size: int) -> None:
        data = batch(
            bytes(size),
            timestamp=self.time,
            producer_id=producer_id,
            producer_epoch=0,
            sequence=self.sequences[producer_id],
            transactional=True,
        )
        self.append(data)
        self.took(data)
        self.sequences[producer_id] += 1

    @precondition(lambda self: bool(Transactions(self.batches).open))
    @rule(data=st.data(), aborts=st.booleans())
    def end_a_transaction(self, data: st.DataObject, aborts: bool) -> None:
        producer_id = data.draw(st.sampled_from(sorted(Transactions(self.batches).open)))
        ending = build_end_marker(producer_id, 0, committed=not aborts, coordinator_epoch=0, timestamp=self.time)
        self.append(ending)
        self.took(ending, aborts)

    @rule(sizes=st.lists(st.integers(0, 100), min_size=1, max_size=3))
    def append_as_follower(self, sizes: list[int]) -> None:
        data = batch(*map(bytes, sizes), base_offset=self.end, leader_epoch=self.epoch, timestamp=self.time)
        replicate(self.log, data)
        self.took(data)

    @rule()
    def change_leader(self) -> None:
        self.epoch += 2
        self.log.assign_epoch(self.epoch)

    @rule()
    def roll(self) -> None:
        self.log.roll(self.time)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.end

    @precondition(lambda self: self.end > self.start)
    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.delete_records_before(self.start)
        # Records before the start may reappear with their segment after a stop without a checkpoint, but the
        # model always remembers the start, as the directory's checkpoint does.

    @rule(by_age=st.booleans(), limit=st.integers(0, 1500))
    def expire(self, by_age: bool, limit: int) -> None:
        self.log.config = CONFIG._replace(
            retention_ms=limit // 10 if by_age else -1, retention_bytes=-1 if by_age else limit
        )
        now_ms = self.time + 50
        expired = self.log.find_expired(self.end, now_ms)
        self.log.config = CONFIG
        if expired is None:
            assert by_age or self.log.size_bytes == 0 or self.log.size_bytes - limit < CONFIG.segment_bytes
            return
        if expired.start_offset == self.end:
            self.log.roll(self.time)
        self.log.delete_records_before(expired.start_offset)
        gone = [written for written in self.batches if self.start <= written.last < expired.start_offset]
        self.start = expired.start_offset
        if by_age:
            assert all(written.timestamp < now_ms - limit // 10 for written in gone)
        else:
            assert limit <= self.log.size_bytes < limit + CONFIG.segment_bytes

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        self.log.truncate_to(offset)
        if offset < self.end:
            kept = [written for written in self.batches if written.last < offset]
            cut = self.batches[len(kept)] if len(kept) < len(self.batches) else None
            self.end = max(self.start, min(offset, cut.first) if cut is not None else offset)
            self.batches = kept
            if offset <= self.start:
                self.batches = []
        self._forget_sequences()

    def _forget_sequences(self) -> None:
        """Producers continue after their last remaining batch."""
        known = {producer.producer_id: producer for producer in self.log.producers()}
        for producer_id in PRODUCERS:
            mine = [written for written in self.batches if written.producer_id == producer_id]
            if producer_id in known and mine:
                last = mine[-1]
                self.sequences[producer_id] = last.sequence + last.last - last.first + 1

    @rule(offset=st.integers(0, 200))
    def start_over(self, offset: int) -> None:
        offset += self.end
        self.log.truncate_fully_and_start_at(offset)
        self.start = self.end = offset
        self.batches = []

    @rule()
    def stop_cleanly(self) -> None:
        self.log.close()
        assert self.disk.open_paths() == []
        self.disk = self.disk.kill()
        self.log = open_log(self.disk, CONFIG, clean=True, log_start_offset=self.start)

    @rule(share=st.floats(0, 1))
    def be_killed(self, share: float) -> None:
        recovery_point = int(self.log.recovery_point * share)
        self.disk = self.disk.kill()
        self.log = open_log(self.disk, CONFIG, recovery_point=recovery_point, log_start_offset=self.start)

    @rule(data=st.data(), max_bytes=st.integers(1, 800), whole=st.booleans())
    def read_somewhere(self, data: st.DataObject, max_bytes: int, whole: bool) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        upper_offset = data.draw(st.integers(offset, self.end))
        upper = self.log.position_of(upper_offset)
        part = read_checked(lambda: self.log.read(offset, max_bytes, upper=upper, min_one_batch=whole))
        slot = bisect_left([written.last for written in self.batches], offset)
        visible = [written for written in self.batches[slot:] if written.last < upper_offset]
        # A batch that contains the bound is not visible, nor is anything after it.
        if part is None:
            assert not visible or offset >= upper_offset or (not whole and len(visible[0].data) > max_bytes)
            return
        found = part.read()
        expected = b"".join(written.data for written in visible)
        assert expected.startswith(found), "the bytes are those that were written, from the right batch on"
        assert len(found) <= max(max_bytes, len(visible[0].data))
        assert len(found) >= min(max_bytes, len(visible[0].data))

    @invariant()
    def the_ends_agree(self) -> None:
        assert (self.log.start_offset, self.log.end_offset) == (self.start, self.end)
        assert self.log.recovery_point <= self.end

    @invariant()
    def everything_can_be_read_in_order(self) -> None:
        offset = self.start
        found = b""
        while (part := read(self.log, offset)) is not None:
            content = part.read()
            found += content
            offset = walk_batches(content)[-1].next_offset
        live = [written.data for written in self.batches if written.last >= self.start]
        assert found == b"".join(live)

    @invariant()
    def epochs_are_those_of_the_batches(self) -> None:
        for written in self.batches:
            if written.first >= self.start:
                assert self.log.epochs.epoch_of(written.first) == written.epoch

    @invariant()
    def producers_last_batches_are_known(self) -> None:
        known = {producer.producer_id: producer for producer in self.log.producers()}
        for producer_id in PRODUCERS:
            mine = [written for written in self.batches if written.producer_id == producer_id]
            if not mine or mine[-1].last < self.start:
                continue
            assert known[producer_id].last_offset == mine[-1].last
            duplicate = self.log.check_producer(walk_batches(mine[-1].data)[0])
            assert duplicate is not None and duplicate.first_offset == mine[-1].first
            assert len(known[producer_id].batches) <= REMEMBERED_BATCHES

    @invariant()
    def open_transactions_are_known(self) -> None:
        expected = Transactions(self.batches).open
        known = {producer.producer_id: producer.current_txn_first_offset for producer in self.log.producers()}
        for producer_id in TRANSACTIONAL:
            mine = [written for written in self.batches if written.producer_id == producer_id]
            if mine and (expected.get(producer_id, mine[-1].last) >= self.start):
                assert known[producer_id] == expected.get(producer_id, NO_TRANSACTION)

    @invariant()
    def readers_learn_of_aborted_transactions_and_of_no_others(self) -> None:
        expected = Transactions(self.batches).aborted
        found = [
            (each.producer_id, each.first_offset, each.last_offset)
            for each in self.log.aborted_transactions(self.start, None)
        ]
        assert [each for each in found if each[1] >= self.start] == [each for each in expected if each[1] >= self.start]
        for producer_id, first, last in expected:
            if first >= self.start:
                part = read(self.log, first, 1)
                assert part is not None
                told = [(each.producer_id, each.last_offset) for each in self.log.aborted_transactions(first, part)]
                assert (producer_id, last) in told

    @invariant()
    def timestamps_are_found(self) -> None:
        live = [written for written in self.batches if written.first >= self.start]
        if len(live) == len(self.batches) and live:
            asked = live[len(live) // 2].timestamp
            expected = next(written for written in live if written.timestamp >= asked)
            found = self.log.find_timestamp(asked)
            assert found is not None and (found.timestamp, found.offset) == (expected.timestamp, expected.first)


LogModel.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestLogModel = LogModel.TestCase
