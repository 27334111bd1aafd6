import pytest

from simulator.disk import SimDisk
from tests.storage.batches import FOLDER


@pytest.fixture
def disk() -> SimDisk:
    disk = SimDisk()
    disk.make_dirs(FOLDER)
    disk.sync_dir("")
    return disk
