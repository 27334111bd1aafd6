"""TransactionShard: the metadata as the parts of a machine see it, and how they run operations in their shard again.

The node implements it in `quire.node.transaction_shard`.
"""

from typing import Protocol

from quire.coordinators.transaction.transactions import Markers
from quire.metadata.image import ClusterImage
from quire.pending import Pending


class TransactionShard(Protocol):
    """The operations run as requests do. If the shard is no longer active, they do nothing."""

    @property
    def image(self) -> ClusterImage:
        """The committed metadata: who leads a partition, and whether it still exists."""
        ...

    def when_up_to_date(self) -> Pending[bool]:
        """True when the image has everything that was committed at the time of the call; False if that fails."""
        ...

    def markers_written(self, markers: Markers) -> None:
        """Runs `TransactionMachine.markers_written`."""
        ...

    def abort_with_new_producer_id(self, transactional_id: str) -> None:
        """Gets a new producer id and runs `TransactionMachine.abort_timed_out`. Does nothing if there is none."""
        ...
