"""The id of the page cache on the machine of the tests."""

from pathlib import Path

import pytest

from quire.real import page_cache
from quire.real.disk import RealDisk
from quire.real.page_cache import page_cache_id

HAS_BOOT_ID = Path("/proc/sys/kernel/random/boot_id").exists()


@pytest.mark.skipif(not HAS_BOOT_ID, reason="the kernel has no boot id")
def test_a_folder_keeps_its_id_and_a_new_folder_of_the_same_name_gets_another(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    first = RealDisk().cache_id(str(folder))
    (folder / "file").write_text("content")
    assert first is not None
    assert page_cache_id(str(folder)) == first
    folder.rename(tmp_path / "old")
    folder.mkdir()
    assert page_cache_id(str(folder)) != first


def test_a_kernel_that_does_not_say_when_it_was_started_has_no_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page_cache._boot_id.cache_clear()
    monkeypatch.setattr(page_cache, "_BOOT_ID", str(tmp_path / "missing"))
    try:
        assert page_cache_id(str(tmp_path)) is None
    finally:
        page_cache._boot_id.cache_clear()
