"""The registration mark of a broker, which counts only with the page cache that holds it."""

import json
from collections.abc import Callable
from itertools import count

import pytest

from quire.storage.directory.clean_shutdown import remove_mark, write_mark
from quire.storage.directory.registration_mark import FILE_NAME, Registration, RegistrationMark
from simulator.disk import Crashed, DiskCall, SimDisk
from simulator.random import SimRandom

PATH = f"data/{FILE_NAME}"


def mark(disk: SimDisk) -> RegistrationMark:
    return RegistrationMark(disk, "data")


def test_a_killed_process_leaves_its_registration_behind(disk: SimDisk) -> None:
    assert mark(disk).read() is None
    mark(disk).write(Registration(42))
    assert mark(disk).read() == Registration(42)
    again = disk.kill()
    assert mark(again).read() == Registration(42)
    mark(again).write(Registration(43))
    assert mark(again.kill()).read() == Registration(43)


@pytest.mark.parametrize("reorder", [False, True])
@pytest.mark.parametrize("synced", [False, True])
def test_after_a_power_loss_an_existing_mark_does_not_count(disk: SimDisk, reorder: bool, synced: bool) -> None:
    mark(disk).write(Registration(42))
    if synced:
        file = disk.open(PATH)
        file.sync()
        disk.sync_dir("data")
    after = disk.crash(SimRandom(1), reorder=reorder)
    assert after.exists(PATH) or not synced
    assert mark(after).read() is None
    mark(after).write(Registration(43))
    assert mark(after.kill()).read() == Registration(43), "and that of the next registration does"


def test_a_process_that_is_killed_at_any_step_leaves_the_old_registration_or_the_new_one() -> None:
    found = set()
    for step in count(1):
        disk = SimDisk()
        disk.make_dirs("data")
        mark(disk).write(Registration(42))
        disk.calls.crash_at = disk.operations + step
        try:
            mark(disk).write(Registration(43))
        except Crashed:
            found.add(mark(disk.kill()).read())
        else:
            break
    assert found == {Registration(42)}


def test_a_process_that_is_about_to_register_says_so(disk: SimDisk) -> None:
    mark(disk).write(Registration(42, registering=b"i" * 16))
    assert mark(disk.kill()).read() == Registration(42, b"i" * 16)


def test_a_removed_mark_is_gone(disk: SimDisk) -> None:
    mark(disk).remove()
    mark(disk).write(Registration(42))
    mark(disk).remove()
    assert mark(disk.kill()).read() is None


def test_a_disk_that_fails_keeps_the_mark_from_being_removed_without_an_error(disk: SimDisk) -> None:
    mark(disk).write(Registration(42))

    def removal(call: DiskCall) -> bool:
        return call.kind == "remove"

    disk.fail_when(removal)
    mark(disk).remove()
    assert disk.exists(PATH)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda said: said.update(cacheId="another"),
        lambda said: said.update(cacheId=None),
        lambda said: said.update(version=1),
        lambda said: said.update(brokerEpoch=None),
        lambda said: said.update(registering=7),
        lambda said: said.update(registering="no digits"),
        lambda said: said.pop("brokerEpoch"),
        lambda said: said.pop("cacheId"),
    ],
)
def test_a_mark_that_says_something_else_does_not_count(
    disk: SimDisk, spoil: Callable[[dict[str, object]], object]
) -> None:
    mark(disk).write(Registration(42))
    said = json.loads(disk.read_file(PATH))
    spoil(said)
    overwrite(disk, json.dumps(said).encode())
    assert mark(disk).read() is None


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"7", b"null", b"\xff\xfe", bytes(40)])
def test_bytes_that_are_no_mark_do_not_count(disk: SimDisk, content: bytes) -> None:
    mark(disk).write(Registration(42))
    overwrite(disk, content)
    assert mark(disk).read() is None


def test_without_an_id_of_the_page_cache_there_is_no_mark(disk: SimDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    mark(disk).write(Registration(42))
    monkeypatch.setattr(SimDisk, "cache_id", lambda self, path: None)
    assert mark(disk).read() is None
    mark(disk).write(Registration(43))
    assert not disk.exists(PATH)


def test_the_mark_of_a_clean_stop_is_another_file(disk: SimDisk) -> None:
    mark(disk).write(Registration(42))
    write_mark(disk, "data", 42)
    remove_mark(disk, "data")
    assert mark(disk).read() == Registration(42)


def overwrite(disk: SimDisk, content: bytes) -> None:
    file = disk.open(PATH)
    file.truncate(0)
    file.pwritev([content], 0)
