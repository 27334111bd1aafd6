"""What the cleaner leaves alone: a log that a repair works on, one that is damaged, and one with a wrong index."""

import pytest

from quire.protocol.records.batch import HEADER_BYTES
from quire.storage.cleaning.cleaner import Candidate
from quire.storage.log import Log
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.range_check import NotCheckedError
from quire.storage.segment import Segment
from simulator.disk import SimDisk
from tests.storage.cleaning.test_compaction_power_loss import BACKOFF_MS, Usage


def dirty() -> Usage:
    """A log with completed segments that are durable according to the checkpoint, and not compacted yet."""
    usage = Usage(SimDisk())
    usage.start()
    for number in range(12):
        usage.append(number % 2, 100)
    usage.jobs.run_all()
    usage.directory.checkpoint()
    usage.jobs.run_all()
    return usage


def look(usage: Usage) -> None:
    usage.clock.run_for(BACKOFF_MS + 1)


def test_a_log_that_is_lent_is_not_cleaned_before_it_is_taken_back() -> None:
    usage = dirty()
    log = usage.log
    size = log.size_bytes
    assert usage.cleaner.lend(log)
    assert not usage.cleaner.lend(log), "to one at a time"
    look(usage)
    usage.jobs.run_all()
    assert log.size_bytes == size
    usage.cleaner.take_back(log, log.path)
    look(usage)
    usage.jobs.run_all()
    assert log.size_bytes < size


def test_a_log_that_is_being_cleaned_is_not_lent() -> None:
    usage = dirty()
    look(usage)
    assert not usage.cleaner.lend(usage.log)
    usage.jobs.run_all()
    assert usage.cleaner.lend(usage.log)


class Rebuild:
    def __init__(self) -> None:
        self.finished = 0

    @property
    def subject(self) -> str:
        return "an index"

    def run(self) -> None:
        pass

    def finish(self) -> None:
        self.finished += 1


@pytest.mark.parametrize(("owner", "name"), [(Log, "aborted_transactions"), (Segment, "newest_ms")])
def test_a_log_with_a_wrong_index_is_cleaned_once_a_job_has_rebuilt_it(
    owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = dirty()
    log = usage.log
    log.config = log.config._replace(min_compaction_lag_ms=1)
    size = log.size_bytes
    rebuild, right = Rebuild(), getattr(owner, name)

    def look_up(self: object, *arguments: object) -> object:
        if not rebuild.finished:
            raise NotCheckedError(rebuild)
        return right(self, *arguments)

    monkeypatch.setattr(owner, name, look_up)
    look(usage)
    look(usage)
    assert (len(usage.jobs), rebuild.finished) == (1, 0), "one job, however often the cleaner looks"
    usage.jobs.run_all()
    assert (rebuild.finished, log.size_bytes) == (1, size)
    look(usage)
    usage.jobs.run_all()
    assert log.size_bytes < size


def test_a_damaged_log_is_reported_and_cleaned_when_it_is_repaired() -> None:
    usage = dirty()
    log = usage.log
    size = log.size_bytes
    found: list[tuple[Candidate, DamagedBatchError]] = []
    usage.cleaner.damaged = lambda candidate, damage: found.append((candidate, damage))
    file = log.segments[0].file
    (byte,) = file.pread(1, HEADER_BYTES + 20)
    file.pwritev([bytes([byte ^ 1])], HEADER_BYTES + 20)
    for _ in range(3):
        look(usage)
        usage.jobs.run_all()
    ((candidate, damage),) = found
    assert candidate.log is log
    assert damage.path == log.segments[0].path
    file.pwritev([bytes([byte])], HEADER_BYTES + 20)
    assert usage.cleaner.lend(log)
    usage.cleaner.take_back(log, log.path)
    look(usage)
    usage.jobs.run_all()
    assert log.size_bytes < size
