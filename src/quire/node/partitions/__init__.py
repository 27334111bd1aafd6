"""The partitions on this node, kept as the metadata log says.

partitions.py        `Partitions`: what the node and its handlers call; finds the leader of a partition
hosted.py            the table of open partitions, and the committed image
metadata_updates.py  applies each committed change: opens, deletes and configures partitions, assigns roles
opening.py           opens or creates logs, now or later, and takes partitions offline
log_placement.py     which data directory has, or gets, the log of a partition; stray logs
log_deletions.py     deletes the logs of deleted topics, a few per turn
events.py            wakes waiting fetches, starts flushes, reports failing disks
offset_search.py     ListOffsets by time, in jobs if it takes long
"""

from quire.node.partitions.partitions import Partitions

__all__ = ["Partitions"]
