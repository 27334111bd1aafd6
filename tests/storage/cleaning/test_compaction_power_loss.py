"""Power loss in a directory whose logs are written, flushed, checkpointed and compacted at the same time.

A compacted log loses records only from its end, or because there is a later one with the same key. So a reader after
the restart sees the state of the log at some earlier time.
"""

import itertools

import pytest

from quire.protocol.records.batch import walk_batches
from quire.storage.cleaning.cleaner import Candidate, Cleaner, Settings
from quire.storage.directory.log_directory import LogDirectory
from simulator.clock import SimClock
from simulator.disk import Crashed, SimDisk
from simulator.random import SimRandom
from tests.storage.cleaning.compaction import COMPACTED, batches_of, keyed
from tests.storage.loading import load_logs
from tests.storage.manual_jobs import ManualJobs
from tests.storage.noted import noted

CONFIG = COMPACTED._replace(
    segment_bytes=500, index_interval_bytes=150, min_cleanable_dirty_ratio=0.0, file_delete_delay_ms=10
)
KEY = ("orders", 0)
BACKOFF_MS = 50


class Usage:
    """A log that is appended to and cleaned, and everything that was ever written to it."""

    def __init__(self, disk: SimDisk, bytes_per_second: float = float("inf")) -> None:
        self.disk = disk
        self.bytes_per_second = bytes_per_second
        self.clock = SimClock()
        self.written: dict[int, tuple[bytes, bytes]] = {}
        """Offset -> key and value."""
        self.number = 0
        self.durable = 0

    def start(self) -> None:
        self.jobs = ManualJobs()
        self.directory = LogDirectory.open(
            self.disk,
            "data",
            clock=self.clock,
            jobs=self.jobs,
            random=SimRandom(0),
            on_failure=lambda _directory, error: pytest.fail(f"went offline: {error}"),
        )
        load_logs(self.directory, self.jobs, lambda topic: CONFIG)
        self.log = self.directory.open_log(*KEY, CONFIG, topic_id=bytes(15) + b"\x05")
        settings = Settings(
            backoff_ms=BACKOFF_MS,
            table_bytes=1 << 16,
            buffer_bytes=1 << 12,
            bytes_per_second=self.bytes_per_second,
        )
        self.cleaner = Cleaner(self.disk, self.clock, self.jobs, SimRandom(7), lambda: settings, self._candidates)
        self.cleaner.start()

    def _candidates(self) -> list[Candidate]:
        return [Candidate(self.directory, KEY, self.log, self.log.end_offset)]

    def append(self, key: int, size: int) -> None:
        self.number += 1
        entry = (b"key %d" % key, b"%d " % self.number + bytes(size))
        data = keyed(entry, timestamp=self.clock.now_ms())
        headers = walk_batches(data)
        try:
            self.log.append(data, headers, 0, self.clock.now_ms())
        finally:
            self.written[headers[0].base_offset] = entry

    def flush(self) -> None:
        def done() -> None:
            self.durable = max(self.durable, self.log.recovery_point)

        self.directory.flush(self.log, done)

    def check_after_power_loss(self, disk: SimDisk) -> None:
        self.disk = disk
        self.start()
        found = {
            record.offset: (bytes(record.key or b""), bytes(record.value or b""))
            for _, records in batches_of(self.log)
            for record in records
        }
        end_offset = self.log.end_offset
        assert end_offset >= self.durable, "what was flushed is gone"
        assert found.items() <= self.written.items()
        for offset, (key, _) in self.written.items():
            if offset < end_offset and offset not in found:
                later = [each for each, entry in found.items() if each > offset and entry[0] == key]
                assert later, f"offset {offset} is gone, and nothing came for it; the log ends at {end_offset}"


def use_randomly(usage: Usage, random: SimRandom, steps: int) -> None:
    for _ in range(steps):
        dice = random.below(100)
        if dice < 50:
            usage.append(random.below(6), random.below(120))
        elif dice < 60:
            usage.flush()
        elif dice < 85:
            if len(usage.jobs):
                usage.jobs.run_next()
        elif dice < 89:
            usage.directory.checkpoint()
        elif dice < 97:
            usage.clock.run_for(BACKOFF_MS)
        else:
            usage.log.roll(usage.clock.now_ms())


@pytest.mark.parametrize("reorder", [False, True], ids=["in order", "sectors in any order"])
@pytest.mark.parametrize("block", range(6))
def test_power_loss_after_any_use(block: int, reorder: bool) -> None:
    for seed in range(block * 30, block * 30 + 30):
        random = SimRandom(seed)
        usage = Usage(SimDisk(random.stream("torn writes")))
        usage.start()
        use_randomly(usage, random, steps=20 + random.below(150))
        with noted(f"seed {seed}, reorder {reorder}"):
            usage.check_after_power_loss(usage.disk.crash(random.stream("power"), reorder=reorder))


def compact_while_more_is_written(usage: Usage) -> None:
    for round_number in range(3):
        for number in range(12):
            usage.append(number % 4, 40)
        usage.jobs.run_all()
        usage.clock.run_for(BACKOFF_MS)
        for number in range(8):
            usage.append(number % 3, 30 * round_number)
        for _ in range(40):
            if len(usage.jobs):
                usage.jobs.run_next()


def test_power_loss_at_every_single_operation() -> None:
    for number in itertools.count(1):
        usage = Usage(SimDisk(SimRandom(number), crash_at=number))
        try:
            usage.start()
            compact_while_more_is_written(usage)
        except Crashed:
            with noted(f"at operation {number}"):
                usage.check_after_power_loss(usage.disk.crash(SimRandom(number), reorder=number % 2 == 0))
        else:
            assert len(usage.log.segments) < 14 and number > 150
            break


def test_nothing_is_compacted_before_the_checkpoint_says_durably_that_it_is_on_disk() -> None:
    usage = Usage(SimDisk())
    usage.start()
    for number in range(12):
        usage.append(number % 2, 100)
    usage.jobs.run_all()
    size = usage.log.size_bytes
    usage.clock.run_for(BACKOFF_MS + 1)
    assert len(usage.jobs) == 1, "the checkpoint is being written"
    usage.jobs.run_all()
    assert usage.log.size_bytes == size
    usage.clock.run_for(BACKOFF_MS)
    usage.jobs.run_all()
    assert usage.log.size_bytes < size


def test_records_truncated_during_cleaning_do_not_return() -> None:
    usage = Usage(SimDisk(), bytes_per_second=4000)
    usage.start()
    for number in range(12):
        usage.append(number, 100)
    while not usage.disk.exists("data/orders-0/00000000000000000004.log.cleaned"):
        usage.jobs.run_all()
        usage.clock.run_for(BACKOFF_MS / 5)
    assert [segment.base_offset for segment in usage.log.segments] == [0, 2, 4, 6, 8, 10]
    usage.directory.truncate([(usage.log, 5)])
    for offset in range(5, 12):
        del usage.written[offset]
    for _ in range(8):
        usage.append(20, 100)
    for _ in range(200):
        usage.jobs.run_all()
        usage.clock.run_for(BACKOFF_MS)
    found = {record.offset: record.value for _, records in batches_of(usage.log) for record in records}
    assert found.items() <= {offset: value for offset, (_, value) in usage.written.items()}.items()
    clean_before = usage.directory.cleaned_offsets.get(KEY)
    assert clean_before is not None
    assert [offset for offset in found if offset < clean_before] == [*range(5), clean_before - 1]
