"""The nodes' own figures, from a real node."""

import os

from quire.client.shell_blocking import BlockingClient
from quire.testing import Cluster
from quire_samples.live.node_figures import look_at_nodes, memory_bytes


def test_records_bytes_and_memory_are_those_of_the_node(fresh_quire_cluster: Cluster) -> None:
    with BlockingClient(fresh_quire_cluster.bootstrap_servers) as client:
        empty = look_at_nodes(client, [os.getpid()], 1.0)
        assert (empty.records, empty.records_per_second) == (0, None)
        fresh_quire_cluster.create_topic("orders", partitions=2)
        fresh_quire_cluster.produce("orders", *(b"x" * 1000 for _ in range(20)))
        filled = look_at_nodes(client, [os.getpid()], 3.0).since(empty)
    assert (filled.records_by_topic, filled.records_per_second) == ({"orders": 20}, 10.0)
    assert filled.bytes_per_second is not None and filled.bytes_per_second >= 10_000
    assert filled.memory_bytes is not None and filled.memory_bytes > 10_000_000
    assert (filled.brokers, filled.partitions, filled.fully_in_sync) == (1, 2, 2)


def test_the_memory_of_a_process_that_has_ended_is_unknown() -> None:
    assert memory_bytes(2**22 + 1) is None
