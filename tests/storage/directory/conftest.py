import pytest

from tests.storage.directory.directory_world import World


@pytest.fixture
def world() -> World:
    return World()
