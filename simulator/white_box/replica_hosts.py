"""Where the replicas of each partition are: all of them that nodes serve now."""

from collections.abc import Sequence
from typing import NamedTuple

from quire.replication.partition import Partition
from simulator.machine import Machine, MachineState

Key = tuple[bytes, int]
"""Topic id and index."""


class Host(NamedTuple):
    """A replica on a node that runs."""

    machine: Machine
    partition: Partition


def hosts_of(machines: Sequence[Machine]) -> dict[Key, dict[int, Host]]:
    """The replicas on nodes that serve, by node id."""
    found: dict[Key, dict[int, Host]] = {}
    for number, machine in enumerate(machines, 1):
        node = machine.node
        if node is None or machine.state is not MachineState.SERVING or not hasattr(node, "partitions"):
            continue
        for partition in node.partitions:
            found.setdefault((partition.topic_id, partition.index), {})[number] = Host(machine, partition)
    return found
