"""The files of one partition (`Log`) and of one data directory (`LogDirectory`), in Apache Kafka's formats.

Nothing here knows of requests, brokers or replicas. Everything goes through the Disk seam, so the same code runs on a
real file system and on the simulated disk that forgets what was not synced. Bytes become durable by a flush; until then
a crash may take them, and opening the log again cuts it back to whole batches.
"""

from quire.storage.append_info import AppendInfo
from quire.storage.errors import DataDirectoryError
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.log_directory import LogDirectory
from quire.storage.meta_properties import MetaProperties
from quire.storage.positions import LogPosition
from quire.storage.producer_state import ProducerEntry

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
