"""The marks in the cluster that record what a stream has written.

Every task of a stream's sink has an id, `spark-sink-mark-<sink>-<query>-task-<number>`: its transactional id and the
name of a consumer group without members. The metadata of that group's committed offset is the task's mark: the number
of the last batch that it has written, the number of rows and their order-independent hash. The driver's mark is in the
group `spark-sink-mark-<sink>-<query>-batch`: the last batch whose tasks were all done, and their number.

The offset itself is always 0, and its partition is in a topic without records: the lag of these groups is 0 in every
tool that computes one.
"""

import json
from typing import NamedTuple

from pyspark_quire.errors import QuireError
from quire.client.group_offsets import OffsetAndMetadata

OFFSET = 0
"""The committed offset of every mark: the end of an empty partition."""

DIGESTS = 1 << 64
"""Digests are added modulo this number."""


class TaskMark(NamedTuple):
    """What one task wrote last, in the same transaction as this mark."""

    batch_id: int
    rows: int
    digest: int

    def to_offset(self) -> OffsetAndMetadata:
        content = {"batch": self.batch_id, "rows": self.rows, "hash": f"{self.digest:016x}"}
        return OffsetAndMetadata(OFFSET, json.dumps(content))

    @staticmethod
    def from_offset(found: OffsetAndMetadata, group: str) -> "TaskMark":
        try:
            content = json.loads(found.metadata)
            return TaskMark(int(content["batch"]), int(content["rows"]), int(content["hash"], 16))
        except (ValueError, TypeError, KeyError):
            raise _foreign(found, group) from None


class BatchMark(NamedTuple):
    """The last batch that was written completely, and its number of tasks."""

    batch_id: int
    tasks: int

    def to_offset(self) -> OffsetAndMetadata:
        return OffsetAndMetadata(OFFSET, json.dumps({"batch": self.batch_id, "tasks": self.tasks}))

    @staticmethod
    def from_offset(found: OffsetAndMetadata, group: str) -> "BatchMark":
        try:
            content = json.loads(found.metadata)
            return BatchMark(int(content["batch"]), int(content["tasks"]))
        except (ValueError, TypeError, KeyError):
            raise _foreign(found, group) from None


class SinkName(NamedTuple):
    """One sink of one query; the query's id is in its checkpoint, and lasts as long."""

    query_id: str
    sink: str

    def __str__(self) -> str:
        return f"sink {self.sink} of query {self.query_id}"

    def task(self, number: int) -> str:
        """Transactional id and group of a task."""
        return f"{self._prefix}-task-{number}"

    @property
    def batches(self) -> str:
        """The group of the driver's mark; it cannot be a task's, which ends with a number."""
        return f"{self._prefix}-batch"

    def task_number(self, name: str) -> int | None:
        """The task with this id; None if it is not a task of this sink."""
        prefix = f"{self._prefix}-task-"
        number = name.removeprefix(prefix)
        return int(number) if name.startswith(prefix) and number.isascii() and number.isdigit() else None

    @property
    def _prefix(self) -> str:
        return f"spark-sink-mark-{self.sink}-{self.query_id}"


def _foreign(found: OffsetAndMetadata, group: str) -> QuireError:
    return QuireError(
        f"group {group} holds offset {found.offset} with the note {found.metadata[:60]!r}, which no sink has written; "
        "no other program may use the groups of a stream's sink"
    )
