from collections.abc import Iterator

import pytest

from quire.testing import Cluster


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A real node, shared by the tests of one file: each uses topics of its own."""
    with Cluster(config={"num.partitions": 3}) as cluster:
        yield cluster.bootstrap_servers
