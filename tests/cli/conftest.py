from collections.abc import Iterator, Mapping

import pytest

from quire.testing import Cluster
from tests.wire.clients import OTHER_BROKER


@pytest.fixture(scope="module")
def settings() -> Mapping[str, int | str]:
    """The options with which the node of a test file is started."""
    return {"num.partitions": 3}


@pytest.fixture(scope="module")
def servers(settings: Mapping[str, int | str]) -> Iterator[str]:
    """A real node, shared by the tests of one file: each uses topics of its own.

    As for tests/wire, QUIRE_WIRE_BOOTSTRAP names another broker; those of groups and transactions pass on any.
    """
    if OTHER_BROKER is not None:
        yield OTHER_BROKER
        return
    with Cluster(config=settings) as cluster:
        yield cluster.bootstrap_servers
