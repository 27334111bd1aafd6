"""The files of one partition (`Log`) and of one data directory (`LogDirectory`), in Apache Kafka's formats.

Nothing here knows of requests, brokers or replicas. Everything goes through the Disk seam, so the same code runs on a
real file system and on the simulated disk that forgets what was not synced. Bytes become durable in `Log.flush` and its
parts; until then a crash may take them, and opening the log again cuts it back to whole batches.
"""

from quire.storage.log import AppendInfo, Log
from quire.storage.log_config import LogConfig
from quire.storage.positions import LogPosition

__all__ = ["AppendInfo", "Log", "LogConfig", "LogPosition"]
