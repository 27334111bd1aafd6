"""The pytest plugin: `quire_cluster`, `fresh_quire_cluster`, and the nodes' logs beside a failed test.

pytest loads this in every run on a machine where Quire is installed: nothing of Quire is imported until a fixture is
used. `quire_cluster` is one process for the whole session, because that makes a test cost milliseconds: give each test
topics of its own. Faults asked for in a test end with that test. Override `quire_config` to change broker settings.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from quire.testing.cluster import Cluster


@pytest.fixture(scope="session")
def quire_config() -> Mapping[str, str | int | bool]:
    """Broker settings of the clusters below, by Kafka's names; none unless overridden."""
    return {}


@pytest.fixture(scope="session")
def quire_cluster(quire_config: Mapping[str, str | int | bool]) -> Iterator[Cluster]:
    """A running Quire, shared by all tests of the session."""
    from quire.testing.cluster import Cluster

    with Cluster(config=quire_config) as cluster:
        yield cluster


@pytest.fixture
def fresh_quire_cluster(quire_config: Mapping[str, str | int | bool]) -> Iterator[Cluster]:
    """A running Quire of this test's own, to be killed, restarted or filled."""
    from quire.testing.cluster import Cluster

    with Cluster(config=quire_config) as cluster:
        yield cluster


_log_starts: dict[int, int] = {}
"""id of a cluster -> size of its log when the current test began."""


def pytest_runtest_logstart() -> None:
    _log_starts.clear()
    for cluster in _running_clusters():
        _log_starts[id(cluster)] = cluster.log_size


def pytest_runtest_logfinish() -> None:
    for cluster in _running_clusters():
        cluster.clear_faults()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for cluster in _running_clusters():
            log = cluster.log(_log_starts.get(id(cluster), 0))
            report.sections.append((f"log of {cluster!r} during this test", log))
    return report


def _running_clusters() -> list[Cluster]:
    module = sys.modules.get("quire.testing.cluster")
    clusters: list[Cluster] = module.running_clusters() if module is not None else []
    return clusters
