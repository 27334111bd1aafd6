"""Power loss at any moment: everything that was flushed is found, and nothing that was not written.

A directory with one log is used for a while: appended to, rolled, flushed, truncated, cut at its start, stopped and
started. Then the power fails, the simulated disk loses unsynced data, and the directory is opened again. Afterwards
- every batch below what a flush was reported for is at its offset,
- every batch found was written at that offset, whole, and offsets have no gap,
- without a truncation, what is found is a prefix of what was written,
- appending continues, and a clean stop and start find all of it.
"""

import itertools

import pytest

from quire.protocol.records.batch import walk_batches
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from simulator.clock import SimClock
from simulator.disk import Crashed, SimDisk
from simulator.random import SimRandom
from tests.storage.batches import batch, read
from tests.storage.manual_jobs import ManualJobs
from tests.storage.noted import noted

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=120, file_delete_delay_ms=10)
PRODUCER = 9


class Usage:
    """A log in use, and what must be found after a power loss."""

    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk
        self.clock = SimClock()
        self.batches: list[tuple[int, bytes]] = []
        """(base offset, bytes) of what is in the log now."""
        self.ever: dict[int, list[bytes]] = {}
        """Base offset -> all that was ever written there."""
        self.durable = 0
        """Below this everything survives."""
        self.truncated = False
        self.epoch = 0
        self.sequence = 0
        self.start_offset = 0

    def start(self) -> None:
        self.jobs = ManualJobs()
        self.directory = LogDirectory.open(
            self.disk,
            "data",
            clock=self.clock,
            jobs=self.jobs,
            random=SimRandom(0),
            on_failure=lambda directory, error: pytest.fail(f"went offline: {error}"),
        )
        self.log = self.directory.open_log("orders", 0, CONFIG, topic_id=bytes(15) + b"\x05")

    def append(self, size: int, *, from_producer: bool = False) -> None:
        data = batch(bytes(size), b"x")
        if from_producer:
            data = batch(bytes(size), b"x", producer_id=PRODUCER, producer_epoch=0, sequence=self.sequence)
        headers = walk_batches(data)
        try:
            self.log.append(data, headers, self.epoch, self.clock.now_ms())
        finally:
            # Also if the power fails during the write, which may be complete.
            self.ever.setdefault(headers[0].base_offset, []).append(bytes(data))
        self.batches.append((headers[0].base_offset, bytes(data)))
        self.sequence += 2 if from_producer else 0

    def flush(self) -> None:
        self.directory.flush(self.log, self.note_durable)

    def note_durable(self) -> None:
        self.durable = max(self.durable, self.log.recovery_point)

    def truncate(self, offset: int) -> None:
        self.truncated = True
        self.durable = min(self.durable, offset)
        self.batches = [(base, data) for base, data in self.batches if walk_batches(data)[0].last_offset < offset]
        self.directory.truncate([(self.log, offset)])
        self.durable = min(self.durable, self.log.end_offset)
        self.epoch += 1
        self.sequence = next((p.last_sequence + 1 for p in self.log.producers()), self.sequence)

    def delete(self, offset: int) -> None:
        self.start_offset = offset
        self.log.delete_records_before(offset)

    def start_over(self) -> None:
        self.truncated = True
        self.batches = []
        self.start_offset = self.log.end_offset + 3
        self.directory.start_over(self.log, self.start_offset)
        self.sequence = 0

    def be_killed_and_restart(self) -> None:
        """A kill: everything that was written is found, but the state in memory is lost."""
        self.disk = self.disk.kill()
        self.start()
        self.start_offset = self.log.start_offset
        self.sequence = next((p.last_sequence + 1 for p in self.log.producers()), self.sequence)

    def restart_cleanly(self) -> None:
        self.jobs.run_all()
        self.directory.close()
        self.durable = self.log.end_offset
        self.start()

    def check_after_power_loss(self, disk: SimDisk) -> None:
        """Opens the directory, and compares it with what must be found."""
        promised = [(base, data) for base, data in self.batches if base < self.durable]
        written = self.batches
        self.disk = disk
        self.start()
        found = content_of(self.log)
        assert self.log.start_offset <= max(self.start_offset, self.durable), "what was not deleted is gone"
        for base, data in promised:
            if walk_batches(data)[0].last_offset >= self.start_offset:
                assert (base, data) in found, f"offset {base} was flushed and is gone"
        next_offset = None
        for base, data in found:
            assert data in self.ever[base], f"the batch at offset {base} was never written"
            assert next_offset in (None, base), f"a gap before {base}"
            next_offset = walk_batches(data)[0].next_offset
        if not self.truncated:
            first = found[0][0] if found else self.log.end_offset
            assert found == [(base, data) for base, data in written if first <= base < self.log.end_offset]
        self._goes_on(found)

    def _goes_on(self, found: list[tuple[int, bytes]]) -> None:
        self.epoch += 10
        data = batch(b"after the crash", producer_id=77, producer_epoch=0, sequence=0)
        headers = walk_batches(data)
        self.log.append(data, headers, self.epoch, self.clock.now_ms())
        assert headers[0].base_offset == (
            walk_batches(found[-1][1])[0].next_offset if found else self.log.end_offset - 1
        )
        state = [(p.producer_id, p.last_sequence, p.last_offset) for p in self.log.producers()]
        epochs = self.log.epochs.entries
        self.jobs.run_all()
        self.directory.close()
        self.start()
        assert content_of(self.log) == [*found, (headers[0].base_offset, bytes(data))]
        assert [(p.producer_id, p.last_sequence, p.last_offset) for p in self.log.producers()] == state
        assert self.log.epochs.entries == epochs


def content_of(log: Log) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    offset = log.start_offset
    while (part := read(log, offset)) is not None:
        content = part.read()
        headers = walk_batches(content)
        assert headers and headers[-1].next_offset > offset, f"reading does not get past offset {offset}"
        found += [(header.base_offset, content[header.position : header.end]) for header in headers]
        offset = headers[-1].next_offset
    return found


def use_randomly(usage: Usage, random: SimRandom, steps: int) -> None:
    for _ in range(steps):
        dice = random.below(100)
        if dice < 45:
            usage.append(random.below(150), from_producer=random.chance(0.5))
        elif dice < 60:
            usage.flush()
        elif dice < 75:
            if len(usage.jobs):
                usage.jobs.run_next()
        elif dice < 80:
            usage.directory.checkpoint()
        elif dice < 84:
            usage.log.roll(usage.clock.now_ms())
        elif dice < 88:
            usage.delete(usage.log.start_offset + random.below(usage.log.end_offset - usage.log.start_offset + 1))
        elif dice < 91:
            usage.truncate(usage.log.start_offset + random.below(usage.log.end_offset - usage.log.start_offset + 1))
        elif dice < 94:
            usage.clock.run_for(5)
        elif dice < 95:
            usage.restart_cleanly()
        elif dice < 97:
            usage.be_killed_and_restart()
        elif dice < 98:
            usage.start_over()
        else:
            usage.epoch += 1


@pytest.mark.parametrize("reorder", [False, True], ids=["in order", "sectors in any order"])
@pytest.mark.parametrize("block", range(8))
def test_power_loss_after_any_use(block: int, reorder: bool) -> None:
    for seed in range(block * 40, block * 40 + 40):
        random = SimRandom(seed)
        usage = Usage(SimDisk(random.stream("torn writes")))
        usage.start()
        use_randomly(usage, random, steps=10 + random.below(60))
        with noted(f"seed {seed}, reorder {reorder}"):
            usage.check_after_power_loss(usage.disk.crash(random.stream("power"), reorder=reorder))


def everything_once(usage: Usage) -> None:
    """Every operation that writes, with data that it could lose."""
    for size in (40, 90, 10):
        usage.append(size, from_producer=True)
    usage.flush()
    usage.jobs.run_all()
    usage.directory.checkpoint()
    usage.jobs.run_all()
    usage.epoch += 1
    for size in (100, 100, 20):
        usage.append(size)
    usage.log.roll(usage.clock.now_ms())
    usage.append(30, from_producer=True)
    usage.flush()
    usage.jobs.run_all()
    usage.delete(5)
    usage.clock.run_for(20)
    usage.jobs.run_all()
    usage.directory.checkpoint()
    usage.jobs.run_all()
    usage.truncate(9)
    for size in (60, 60, 60, 60):
        usage.append(size)
    usage.flush()
    usage.jobs.run_all()
    usage.restart_cleanly()
    usage.append(25, from_producer=True)
    usage.truncate(7)
    usage.append(25)


@pytest.mark.parametrize("loses", ["power", "the process"])
def test_power_loss_or_a_kill_at_every_single_operation(loses: str) -> None:
    for number in itertools.count(1):
        usage = Usage(SimDisk(SimRandom(number), crash_at=number))
        try:
            usage.start()
            everything_once(usage)
        except Crashed:
            after = usage.disk.crash(SimRandom(number)) if loses == "power" else usage.disk.kill()
            with noted(f"at operation {number}, losing {loses}"):
                usage.check_after_power_loss(after)
        else:
            assert number > 100
            break
