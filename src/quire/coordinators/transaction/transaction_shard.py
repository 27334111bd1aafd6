"""TransactionShard: how the parts of a machine that wait for something run operations in their shard again.

The node implements it in `quire.node.transaction_shard`.
"""

from typing import Protocol

from quire.coordinators.transaction.transactions import Markers


class TransactionShard(Protocol):
    """The operations run as requests do. If the shard is no longer active, the methods do nothing."""

    def markers_written(self, markers: Markers) -> None:
        """Runs `TransactionMachine.markers_written`."""
        ...

    def abort_with_new_producer_id(self, transactional_id: str) -> None:
        """Gets a new producer id and runs `TransactionMachine.abort_timed_out`. Does nothing if there is none."""
        ...
