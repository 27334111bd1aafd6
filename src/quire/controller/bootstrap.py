"""What a controller writes first when it becomes active.

To an empty log it writes the records of `bootstrap.checkpoint`, which formatting created: the features that the cluster
starts with. They are in one metadata transaction, as in Kafka, so that no reader sees half of them. If the last leader
died in the middle of a metadata transaction, the new one aborts it.
"""

from collections.abc import Sequence

from quire.config.broker_config import BrokerConfig
from quire.controller.features import min_insync_replicas_records
from quire.metadata.features import has_eligible_leader_replicas, has_transactions
from quire.metadata.image import ClusterImage
from quire.metadata.snapshot import image_of
from quire.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from quire.protocol.schema import Message
from quire.raft.errors import MetadataLogError
from quire.raft.snapshot_file import BOOTSTRAP_NAME, read_snapshot
from quire.seams import Disk


def read_bootstrap(disk: Disk, directory: str) -> list[Message]:
    """The records that formatting left for the first controller."""
    try:
        return read_snapshot(disk, directory, BOOTSTRAP_NAME).records
    except FileNotFoundError:
        raise MetadataLogError(
            f"{directory} has no {BOOTSTRAP_NAME}; format the directory with `quire storage format`"
        ) from None


def activation_records(
    image: ClusterImage, config: BrokerConfig, bootstrap: Sequence[Message], *, in_transaction: bool
) -> list[Message]:
    """Empty if an earlier controller has written them."""
    records: list[Message] = []
    if in_transaction:
        records.append(AbortTransactionRecord(reason="another controller took over"))
    if image.metadata_version:
        return records
    started = image_of(bootstrap)
    content = list(bootstrap)
    if has_eligible_leader_replicas(started.features):
        content += min_insync_replicas_records(started, config)
    if has_transactions(started.metadata_version):
        content = [BeginTransactionRecord(name="Bootstrap records"), *content, EndTransactionRecord()]
    return records + content
