"""A data directory that works, is full, or has failed."""

import errno

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.storage.directory.availability import Availability

FULL = OSError(errno.ENOSPC, "no space")
BROKEN = OSError(errno.EIO, "broken")


class Reported(list[tuple[Exception, bool]]):
    def __call__(self, error: Exception, went_offline: bool) -> None:
        self.append((error, went_offline))


@pytest.fixture
def reported() -> Reported:
    return Reported()


def test_the_first_error_takes_it_offline_and_every_later_use_is_refused(reported: Reported) -> None:
    directory = Availability("data", reported)
    for message in ("data went offline: [Errno 5] broken", "data is offline: [Errno 5] broken"):
        with pytest.raises(ApiError) as caught, directory.guarded():
            raise BROKEN
        assert (caught.value.code, caught.value.message) == (ErrorCode.KAFKA_STORAGE_ERROR, message)
    assert directory.failure is BROKEN
    assert reported == [(BROKEN, True)]


def test_a_full_disk_has_not_failed(reported: Reported) -> None:
    directory = Availability("data", reported)
    with pytest.raises(ApiError) as caught, directory.guarded():
        raise FULL
    assert (caught.value.code, caught.value.message) == (
        ErrorCode.KAFKA_STORAGE_ERROR,
        "data is full: [Errno 28] no space",
    )
    assert directory.failure is None and directory.is_full
    assert reported == [(FULL, False)]
    with directory.guarded():
        pass


def test_room_is_noted_after_an_interval_without_an_error(reported: Reported) -> None:
    directory = Availability("data", reported)
    directory.fail(FULL)
    directory.note_room()
    assert directory.is_full, "there was no room since the last look"
    directory.note_room()
    assert not directory.is_full


def test_an_error_after_the_failure_is_not_a_second_failure(reported: Reported) -> None:
    directory = Availability("data", reported)
    directory.fail(BROKEN)
    directory.fail(OSError(errno.EIO, "again"))
    assert directory.failure is BROKEN
    assert [went_offline for _, went_offline in reported] == [True, False]
