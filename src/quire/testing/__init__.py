"""A real Quire for other people's tests: `with Cluster() as cluster:` or the pytest fixture `quire_cluster`.

`Cluster` runs real node processes on free ports with data in a temporary folder. `Proxy` stands between a client and a
node and loses, holds or cuts what passes. `WireConnection` speaks raw frames, for tests of what clients hide.
Nothing here is imported before it is asked for: the pytest plugin of this package is loaded by every pytest run on the
machine Quire is installed on.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.testing.cluster import Cluster
    from quire.testing.node_process import ClusterError
    from quire.testing.proxy import Proxy
    from quire.testing.wire_connection import WireConnection

__all__ = ["Cluster", "ClusterError", "Proxy", "WireConnection"]

_MODULES = {
    "Cluster": "quire.testing.cluster",
    "ClusterError": "quire.testing.node_process",
    "Proxy": "quire.testing.proxy",
    "WireConnection": "quire.testing.wire_connection",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_MODULES[name]), name)
