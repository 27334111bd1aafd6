"""One node per file of tests, with limits small enough to be reached."""

from collections.abc import Iterator

import pytest

from quire.testing import Cluster
from tests.fuzz.victim import Victim


@pytest.fixture(scope="module")
def victim() -> Iterator[Victim]:
    with Cluster(config={"socket.request.max.bytes": 20_000_000}) as cluster:
        under_fire = Victim(cluster)
        yield under_fire
        under_fire.close()
