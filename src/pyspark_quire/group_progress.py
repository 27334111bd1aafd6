"""The stream's offsets in a consumer group: for people and tools that watch the lag, and for the start of a stream.

Spark uses its checkpoint, never a group. But the checkpoint of a new stream has no start: after a crash, Spark asks for
the start again, `latest` has moved by then, and the records in between would be skipped. Once the first micro-batch is
planned, its end in the checkpoint also has its start (`positions`). Until then the start is in the group, with a mark:
a restart finds it and starts there. The first real commit, after the first micro-batch, replaces it. Groups can be
shared, so nothing in a checkpoint may depend on the mark.
"""

import hashlib
import json
import logging

from pyspark_quire.errors import QuireError
from pyspark_quire.options import (
    ASSIGN,
    GROUP_ID,
    GROUP_ID_PREFIX,
    STARTING_BY_TIMESTAMP,
    STARTING_OFFSETS,
    STARTING_TIMESTAMP,
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    Options,
)
from pyspark_quire.positions import Position, Positions
from pyspark_quire.subscription import Partitions
from quire.client.cluster import Cluster
from quire.client.group_offsets import OffsetAndMetadata, commit_offsets, fetch_offsets
from quire.protocol.errors import ApiError
from quire.steps import Steps

_log = logging.getLogger("pyspark_quire")


def group_id(options: Options) -> str:
    """`kafka.group.id`, or a name derived from what is read, which is the same after a restart."""
    chosen = options[GROUP_ID]
    if chosen is not None:
        return chosen
    topics = (
        options[SUBSCRIBE]
        or [partition.topic for partition in options[ASSIGN] or []]
        or [options[SUBSCRIBE_PATTERN] or ""]
    )
    return "-".join([options[GROUP_ID_PREFIX], *dict.fromkeys(topics)])[:249]


class GroupProgress:
    def __init__(self, options: Options) -> None:
        self.group_id = group_id(options)
        starting = [options[STARTING_TIMESTAMP], options[STARTING_BY_TIMESTAMP], options[STARTING_OFFSETS]]
        self._digest = hashlib.sha256(repr(starting).encode()).hexdigest()[:16]

    def remembered(self, cluster: Cluster, partitions: Partitions) -> Steps[Positions]:
        """Where a stream with these options started, if it never finished its first micro-batch; else nothing."""
        try:
            committed = yield from fetch_offsets(cluster, self.group_id, partitions)
        except ApiError as error:
            raise QuireError(f"group {self.group_id} cannot return the start of this stream: {error}") from error
        return {
            partition: Position(committed[partition].offset, topic_id)
            for partition, topic_id in partitions.items()
            if partition in committed and committed[partition].metadata == self._mark(topic_id)
        }

    def remember(self, cluster: Cluster, initial: Positions) -> Steps[None]:
        """Commits where the stream starts, with the mark."""
        try:
            yield from self._commit(cluster, initial, marked=True)
        except ApiError as error:
            raise QuireError(f"group {self.group_id} cannot store the start of this stream: {error}") from error

    def commit(self, cluster: Cluster, positions: Positions) -> Steps[None]:
        """Commits what is done. A refusal is only logged: the checkpoint is what counts."""
        try:
            yield from self._commit(cluster, positions, marked=False)
        except ApiError as error:
            _log.warning("the progress of this stream could not be committed to group %s: %s", self.group_id, error)

    def _commit(self, cluster: Cluster, positions: Positions, *, marked: bool) -> Steps[None]:
        offsets = {
            partition: OffsetAndMetadata(position.offset, self._mark(position.topic_id) if marked else "")
            for partition, position in positions.items()
        }
        if offsets:
            yield from commit_offsets(cluster, self.group_id, offsets)

    def _mark(self, topic_id: str) -> str:
        return json.dumps({"initial": self._digest, "id": topic_id})
