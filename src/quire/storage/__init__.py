"""The files of one partition (`Log`) and of one data directory (`LogDirectory`), in Apache Kafka's formats.

Nothing here knows of requests, brokers or replicas. Everything goes through the Disk seam, so the same code runs on a
real file system and on the simulated disk, which loses what was not synced. A flush makes bytes durable. Until then a
crash may lose them, and opening the log truncates it to whole batches.

A log consists of segments (`segments.py`, `rolling.py`) and leader epochs (`leader_epochs.py`). The packages:

    log/          `Log`: appending, following a leader, reading, deleting, flushing
    segment/      `Segment`: one file of a log and its indexes
    indexes/      from an offset, a timestamp or an aborted transaction to a position in a segment
    time_lookup/  finding records by timestamp
    producers/    sequence numbers, open transactions, `.snapshot` files, end markers
    recovery/     opening a log from the files that the last process left
    scanning/     walking batches, comparing checksums, distinguishing damage from a torn tail
    flushing/     fsync: of one log, in jobs, by time
    deleting/     retention, and the removal of segment files
    cleaning/     compaction
    directory/    one data directory and its checkpoint files
    verify/       `quire verify`: checks a directory that no node uses
"""

from quire.storage.append_info import AppendInfo
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.directory.meta_properties import MetaProperties
from quire.storage.errors import DataDirectoryError
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.positions import LogPosition
from quire.storage.producers.producer_state import ProducerEntry

__all__ = [
    "AppendInfo",
    "DataDirectoryError",
    "Log",
    "LogConfig",
    "LogDirectory",
    "LogPosition",
    "MetaProperties",
    "ProducerEntry",
]
