"""The pytest plugin: `quire_cluster`, `fresh_quire_cluster`, and the nodes' logs beside a failed test.

pytest loads this in every run in an environment with Quire, so nothing else of Quire is imported until a fixture is
used. `quire_cluster` is one process for the whole session, so that a test takes milliseconds: use separate topics for
each test. The faults of a test end with that test, and the test fails if no request met one of them. Nodes that a test
leaves killed or stopped are started again before the next one.

Override `quire_config` to change broker settings, and `quire_nodes` for a cluster of several nodes. A module, class or
folder that overrides one of them has a `quire_cluster` of its own, which lives as long as the scope of the override
says. The marker `quire_nodes(3)` gives a test a `fresh_quire_cluster` of three nodes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from quire.testing.cluster import Cluster


@pytest.fixture(scope="session")
def quire_config() -> Mapping[str, str | int | bool]:
    """Broker settings of the clusters below, by Kafka's names; empty by default."""
    return {}


@pytest.fixture(scope="session")
def quire_nodes() -> int:
    """How many nodes the clusters below have; one by default."""
    return 1


@pytest.fixture(scope="session")
def quire_cluster(quire_config: Mapping[str, str | int | bool], quire_nodes: int) -> Iterator[Cluster]:
    """A running Quire, shared by all tests of the session."""
    yield from _shared_cluster(quire_config, quire_nodes)


@pytest.fixture
def fresh_quire_cluster(
    request: pytest.FixtureRequest, quire_config: Mapping[str, str | int | bool], quire_nodes: int
) -> Iterator[Cluster]:
    """A running Quire for one test, which may kill or restart it, or fill its disk."""
    from quire.testing.cluster import Cluster

    marker = request.node.get_closest_marker("quire_nodes")
    if marker is not None and len(marker.args) != 1:
        pytest.fail(
            "the marker quire_nodes needs the number of nodes, as in @pytest.mark.quire_nodes(3)", pytrace=False
        )
    with Cluster(marker.args[0] if marker is not None else quire_nodes, config=quire_config) as cluster:
        yield cluster


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "quire_nodes(count): how many nodes the fresh_quire_cluster of this test has")


# --- Overrides of quire_config and quire_nodes
#
# pytest creates a fixture of the session once, with the settings of the first test that needs it, and refuses settings
# of a narrower scope. So what overrides one of these also gets a `quire_cluster`, before pytest reads its fixtures.


@pytest.hookimpl(tryfirst=True)
def pytest_plugin_registered(plugin: object) -> None:
    """For a conftest.py, and for plugins of the user."""
    if plugin is not sys.modules[__name__]:
        _give_cluster(plugin)


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makemodule() -> Generator[None, pytest.Module, pytest.Module]:
    module = yield
    if module is not None:
        collect = module.collect

        def give_and_collect() -> Any:
            _give_cluster(module.obj)  # imports the module, so that pytest reports its errors as usual
            return collect()

        module.collect = give_and_collect  # type: ignore[method-assign]
    return module


def pytest_pycollect_makeitem(obj: object) -> None:
    if isinstance(obj, type):
        _give_cluster(obj, method=True)


def _give_cluster(owner: Any, *, method: bool = False) -> None:
    """Gives a module or class that overrides one of the settings its own `quire_cluster` of the same scope."""
    own: Mapping[str, object] = getattr(owner, "__dict__", {})
    scopes = [scope for name in ("quire_config", "quire_nodes") if (scope := _fixture_scope(own.get(name))) is not None]
    if not scopes or "quire_cluster" in own:
        return
    scope = min(scopes, key=_SCOPES.index)

    def cluster_of_module(quire_config: Mapping[str, str | int | bool], quire_nodes: int) -> Iterator[Cluster]:
        """A running Quire with the settings of this module or folder."""
        yield from _shared_cluster(quire_config, quire_nodes)

    def cluster_of_class(
        self: object, quire_config: Mapping[str, str | int | bool], quire_nodes: int
    ) -> Iterator[Cluster]:
        """A running Quire with the settings of this class."""
        yield from cluster_of_module(quire_config, quire_nodes)

    function: Callable[..., Iterator[Cluster]] = cluster_of_class if method else cluster_of_module
    owner.quire_cluster = pytest.fixture(scope=scope, name="quire_cluster")(function)


_SCOPES = ["function", "class", "module", "package", "session"]
"""The narrowest first."""


def _fixture_scope(value: object) -> Any:
    """The scope of a fixture; None if the value is not one."""
    marker = getattr(value, "_fixture_function_marker", None) or getattr(value, "_pytestfixturefunction", None)
    return getattr(marker, "scope", None)


def _shared_cluster(config: Mapping[str, str | int | bool], nodes: int) -> Iterator[Cluster]:
    from quire.testing.cluster import Cluster

    with Cluster(nodes, config=config) as cluster:
        _shared.append(cluster)
        try:
            yield cluster
        finally:
            _shared.remove(cluster)


# --- Faults and logs

_shared: list[Cluster] = []
"""The clusters that serve several tests."""

_log_starts: dict[int, int] = {}
"""id of a cluster -> size of its log when the current test began."""


def pytest_runtest_logstart() -> None:
    _log_starts.clear()
    for cluster in _running_clusters():
        _log_starts[id(cluster)] = cluster.log_size


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """What an earlier test has killed or stopped serves again; only that test was about it."""
    for cluster in _shared:
        if len(cluster.pids) < len(cluster.nodes):
            cluster.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    result = yield
    if unused := _end_faults():
        from quire.testing.requested_faults import unused_sentence

        pytest.fail(unused_sentence(unused), pytrace=False)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    _end_faults()  # of a test that failed, or never ran


def _end_faults() -> list[str]:
    return [call for cluster in _running_clusters() for call in cluster.take_unused_faults()]


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
