"""Which brokers have a partition, and which of them are in sync, as the metadata says."""

from typing import NamedTuple


class Members(NamedTuple):
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    partition_epoch: int = 0
    """Counts changes of the partition in the metadata. A newer state has a higher epoch."""
