"""How far logs are clean, in a file of Kafka's format."""

import pytest

from quire.storage.cleaning.cleaned_offsets import CleanedOffsets
from quire.storage.directory import checkpoints
from simulator.disk import SimDisk
from tests.storage.manual_jobs import ManualJobs

PATH = f"data/{checkpoints.CLEANED_OFFSETS}"
A, B = ("a", 0), ("b", 1)


@pytest.fixture
def jobs() -> ManualJobs:
    return ManualJobs()


def opened(disk: SimDisk, jobs: ManualJobs) -> CleanedOffsets:
    offsets = CleanedOffsets(disk, jobs, "data", lambda error: None)
    offsets.read()
    return offsets


def test_offsets_are_in_kafkas_file(disk: SimDisk, jobs: ManualJobs) -> None:
    offsets = opened(disk, jobs)
    assert offsets.get(A) is None
    offsets.is_clean_before(A, 50)
    offsets.is_clean_before(B, 7)
    jobs.run_all()
    assert disk.read_file(PATH) == b"0\n2\na 0 50\nb 1 7\n"
    assert opened(disk, jobs).get(A) == 50


def test_a_log_that_was_cut_is_clean_no_further_than_it_reaches(disk: SimDisk, jobs: ManualJobs) -> None:
    offsets = opened(disk, jobs)
    offsets.is_clean_before(A, 50)
    offsets.truncated(A, 60)
    assert offsets.get(A) == 50
    offsets.truncated(A, 20)
    offsets.truncated(B, 5)
    assert disk.read_file(PATH) == b"0\n1\na 0 20\n", "before anything is cut off"
    jobs.run_all()
    assert disk.read_file(PATH) == b"0\n1\na 0 20\n"


def test_nothing_is_known_of_a_deleted_log(disk: SimDisk, jobs: ManualJobs) -> None:
    offsets = opened(disk, jobs)
    offsets.is_clean_before(A, 50)
    jobs.run_all()
    offsets.forget(A)
    assert (A in offsets, offsets.get(A)) == (False, None)
    offsets.save_now()
    assert disk.read_file(PATH) == b"0\n0\n"


def test_without_cleaning_there_is_no_file(disk: SimDisk, jobs: ManualJobs) -> None:
    opened(disk, jobs).save_now()
    assert not disk.exists(PATH)


def test_a_malformed_file_is_the_same_as_none(disk: SimDisk, jobs: ManualJobs) -> None:
    disk.open(PATH, create=True).pwritev([b"nonsense"], 0)
    assert opened(disk, jobs).get(A) is None
