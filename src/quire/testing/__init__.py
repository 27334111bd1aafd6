"""A real Quire for the tests of applications: `with Cluster() as cluster:` or the pytest fixture `quire_cluster`.

`Cluster` runs real node processes on free ports with data in a temporary folder, several of them behind the proxies of
`gateway`. `Proxy` forwards the traffic between a client and a node, and drops or delays responses or closes
connections. `WireConnection` sends and receives raw frames, for tests of what clients hide. Modules are imported only
when they are used, because every pytest run in an environment with Quire loads the plugin of this package.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.testing.cluster import Cluster
    from quire.testing.node_process import ClusterError
    from quire.testing.proxy import Proxy
    from quire.testing.records import Record
    from quire.testing.requested_faults import UnusedFaultError
    from quire.testing.wire_connection import WireConnection

__all__ = ["Cluster", "ClusterError", "Proxy", "Record", "UnusedFaultError", "WireConnection"]

_MODULES = {
    "Cluster": "quire.testing.cluster",
    "ClusterError": "quire.testing.node_process",
    "Proxy": "quire.testing.proxy",
    "Record": "quire.testing.records",
    "UnusedFaultError": "quire.testing.requested_faults",
    "WireConnection": "quire.testing.wire_connection",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_MODULES[name]), name)
