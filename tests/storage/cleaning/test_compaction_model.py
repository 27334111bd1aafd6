"""Random histories of a compacted log, compared with a model that computes the remaining records batch by batch.

Keys, tombstones, keyless records, every codec, idempotent producers, transactions of several producers at once, rolls,
cleaning runs with much and little memory, passing time, clean restarts and power losses.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quire.protocol.records import Compression
from quire.storage.log import Log
from simulator.disk import SimDisk
from simulator.random import SimRandom
from tests.storage.batches import FOLDER, NOW_MS, append, marker, open_log
from tests.storage.cleaning.compaction import COMPACTED, Entry, batches_of, compact_once, keyed, limits

pytestmark = pytest.mark.usefixtures("native")

CONFIG = COMPACTED._replace(segment_bytes=1500, index_interval_bytes=150)


@dataclass
class Batch:
    base: int
    last: int
    entries: dict[int, Entry]
    producer_id: int = -1
    transactional: bool = False
    aborted: bool = False
    marks: int = -1
    """For a marker, the number of the transaction that it ends; for a transactional batch, that of its transaction."""
    control: bool = False
    horizon: int | None = None


@dataclass
class Model:
    batches: list[Batch] = field(default_factory=list)
    transactions: int = 0

    def clean(self, log: Log, first_dirty: int, upper: int, latest: int, now_ms: int) -> None:
        """Applies the rules of compaction, with an offset map of the keys from `first_dirty` to `latest`."""
        known = {
            key: offset
            for batch in self.batches
            if not batch.control and not batch.aborted
            for offset, (key, _) in batch.entries.items()
            if key is not None and first_dirty <= offset <= latest
        }
        last_of = {each.producer_id: (each.last_offset, each.epoch) for each in log.producers()}
        touched_before = next((each.base_offset for each in log.segments if each.base_offset > latest), upper)
        with_batches = {each.marks for each in self.batches if each.transactional and not each.control}
        left: list[Batch] = []
        for batch in self.batches:
            if batch.base >= min(touched_before, upper):
                left.append(batch)
                continue
            passed = batch.horizon is not None and batch.horizon <= now_ms
            if batch.control:
                if batch.entries and batch.marks not in with_batches:
                    if passed:
                        batch.entries = {}
                    elif batch.horizon is None:
                        batch.horizon = now_ms + CONFIG.delete_retention_ms
            elif batch.aborted:
                batch.entries = {}
            else:
                batch.entries = {
                    offset: (key, value)
                    for offset, (key, value) in batch.entries.items()
                    if offset > latest
                    or (key is not None and offset >= known.get(key, -1) and not (value is None and passed))
                }
                if batch.horizon is None and any(value is None for _, value in batch.entries.values()):
                    batch.horizon = now_ms + CONFIG.delete_retention_ms
            if not batch.entries:
                batch.horizon = None
            last_offset, epoch = last_of.get(batch.producer_id, (-1, -1))
            is_last = batch.last == last_offset if last_offset >= 0 else (batch.control and epoch == 0)
            if batch.entries or (batch.producer_id >= 0 and is_last) or batch.last + 1 == upper:
                left.append(batch)
        self.batches = left

    def check(self, log: Log) -> None:
        found = [
            (
                header.base_offset,
                header.last_offset,
                header.base_timestamp if header.has_delete_horizon else None,
                {record.offset: (record.key, record.value) for record in records} if not header.is_control else {},
            )
            for header, records in batches_of(log, max_bytes=700)
        ]
        expected = [
            (each.base, each.last, each.horizon, each.entries if not each.control else {}) for each in self.batches
        ]
        assert found == expected


keys = st.sampled_from([b"a", b"b", b"c", b"d", b"e" * 30, None])
entries: st.SearchStrategy[Entry] = st.tuples(keys, st.one_of(st.none(), st.binary(max_size=3), st.just(bytes(120))))
steps = st.one_of(
    st.tuples(
        st.just("append"), st.lists(entries, min_size=1, max_size=6), st.sampled_from(Compression), st.booleans()
    ),
    st.tuples(
        st.just("transaction"),
        st.lists(entries, min_size=1, max_size=3),
        st.sampled_from(Compression),
        st.integers(1, 3),
    ),
    st.tuples(st.just("end"), st.integers(1, 3), st.booleans()),
    st.tuples(st.just("roll")),
    st.tuples(
        st.just("clean"), st.integers(0, 1500), st.sampled_from([4, 8, 1000]), st.sampled_from([128, 600, 65536])
    ),
    st.tuples(st.just("reopen"), st.booleans()),
)


class History:
    def __init__(self) -> None:
        self.disk = SimDisk(SimRandom(1))
        self.disk.make_dirs(FOLDER)
        self.disk.sync_dir("")
        self.disk.sync_dir("data")
        self.log = open_log(self.disk, CONFIG)
        self.model = Model()
        self.now_ms = NOW_MS
        self.clean_before = 0
        self.recovery_point = 0
        """The lowest possible one: nothing beyond the recovery point is ever compacted."""
        self.sequences: dict[int, int] = {}
        self.open: dict[int, int] = {}
        """Producer id -> the number of its transaction."""

    def append(self, values: list[Entry], codec: Compression, idempotent: bool) -> None:
        self._write(values, codec, 9 if idempotent else -1, None)

    def transaction(self, values: list[Entry], codec: Compression, producer_id: int) -> None:
        if producer_id not in self.open:
            self.model.transactions += 1
            self.open[producer_id] = self.model.transactions
        self._write(values, codec, producer_id, self.open[producer_id])

    def _write(self, values: list[Entry], codec: Compression, producer_id: int, transaction: int | None) -> None:
        sequence = self.sequences.get(producer_id, 0) if producer_id >= 0 else -1
        self.sequences[producer_id] = sequence + len(values)
        info = append(
            self.log,
            keyed(
                *values,
                compression=codec,
                producer_id=producer_id,
                sequence=sequence,
                transactional=transaction is not None,
            ),
        )
        self.model.batches.append(
            Batch(
                info.base_offset,
                info.last_offset,
                dict(enumerate(values, info.base_offset)),
                producer_id,
                transactional=transaction is not None,
                marks=-1 if transaction is None else transaction,
            )
        )

    def end(self, producer_id: int, aborts: bool) -> None:
        if producer_id not in self.open:
            return
        number = self.open.pop(producer_id)
        info = append(self.log, marker(producer_id, aborts=aborts))
        for batch in self.model.batches:
            if batch.marks == number:
                batch.aborted = aborts
        self.model.batches.append(
            Batch(
                info.base_offset,
                info.last_offset,
                {info.base_offset: (b"", b"")},
                producer_id,
                True,
                False,
                number,
                True,
            )
        )

    def roll(self) -> None:
        self.log.roll(NOW_MS)

    def clean(self, passed_ms: int, table_keys: int, buffer_bytes: int) -> None:
        self.now_ms += passed_ms
        stable = self.log.producer_state.first_open_transaction_offset
        bases = [each.base_offset for each in self.log.segments if stable is None or each.base_offset <= stable]
        upper = bases[-1]
        if upper <= self.clean_before:
            return
        using = limits(table_bytes=table_keys * 24, load_factor=0.9, buffer_bytes=buffer_bytes)
        first_dirty, self.clean_before = (
            self.clean_before,
            compact_once(self.disk, self.log, self.clean_before, upper=upper, now_ms=self.now_ms, using=using),
        )
        assert first_dirty < self.clean_before <= upper
        self.recovery_point = max(self.recovery_point, upper)
        self.model.clean(self.log, first_dirty, upper, self.clean_before - 1, self.now_ms)

    def reopen(self, clean: bool) -> None:
        if clean:
            self.log.close()
            self.disk = self.disk.kill()
        else:
            self.log.flush()
            self.disk = self.disk.crash(SimRandom(self.log.end_offset), reorder=True)
        self.log = open_log(self.disk, CONFIG, clean=clean, recovery_point=self.recovery_point)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=st.lists(steps, min_size=1, max_size=40))
def test_a_compacted_log_is_what_the_model_says(history: list[tuple[object, ...]]) -> None:
    run = History()
    for name, *arguments in history:
        getattr(run, str(name))(*arguments)
        run.model.check(run.log)
    for producer_id in list(run.open):
        run.end(producer_id, False)
    run.roll()
    for passed_ms in (0, 0, 1000, 0):
        run.clean_before = 0
        run.clean(passed_ms, 1000, 4096)
        run.model.check(run.log)
    run.reopen(clean=False)
    run.model.check(run.log)
