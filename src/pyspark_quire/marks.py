"""The marks a stream leaves in the cluster about what it has written, and where they are kept.

Every task of a stream's sink has an id of its own, `<query>-<sink>-<task>`: its transactional id and the name of a
consumer group without members. That group's offset on partition 0 of the sink's topic is the task's mark: the number of
the last batch it has written, and, as metadata, how many rows that was and their order-free hash. The driver leaves a
mark of its own in the group `<query>-<sink>-batch`: the last batch whose tasks were all done, and how many they were.
"""

import json
from typing import NamedTuple

from pyspark_quire.errors import QuireError
from quire.client.group_offsets import OffsetAndMetadata

DIGESTS = 1 << 64
"""Digests are added up modulo this."""


class TaskMark(NamedTuple):
    """What one task wrote last, all of it in the transaction that also left this mark."""

    batch_id: int
    rows: int
    digest: int

    def to_offset(self) -> OffsetAndMetadata:
        return OffsetAndMetadata(self.batch_id, json.dumps({"rows": self.rows, "hash": f"{self.digest:016x}"}))

    @staticmethod
    def from_offset(found: OffsetAndMetadata, group: str) -> "TaskMark":
        try:
            content = json.loads(found.metadata)
            return TaskMark(found.offset, int(content["rows"]), int(content["hash"], 16))
        except (ValueError, TypeError, KeyError):
            raise _foreign(found, group) from None


class BatchMark(NamedTuple):
    """The last batch that was written as a whole, by so many tasks."""

    batch_id: int
    tasks: int

    def to_offset(self) -> OffsetAndMetadata:
        return OffsetAndMetadata(self.batch_id, json.dumps({"tasks": self.tasks}))

    @staticmethod
    def from_offset(found: OffsetAndMetadata, group: str) -> "BatchMark":
        try:
            return BatchMark(found.offset, int(json.loads(found.metadata)["tasks"]))
        except (ValueError, TypeError, KeyError):
            raise _foreign(found, group) from None


class SinkName(NamedTuple):
    """One sink of one query; the query's id is in its checkpoint, and lives as long."""

    query_id: str
    sink: str

    def __str__(self) -> str:
        return f"sink {self.sink} of query {self.query_id}"

    def task(self, number: int) -> str:
        """Transactional id and group of a task."""
        return f"{self.query_id}-{self.sink}-{number}"

    @property
    def batches(self) -> str:
        """The group of the driver's mark; it cannot be a task's, which ends with a number."""
        return f"{self.query_id}-{self.sink}-batch"

    def task_number(self, name: str) -> int | None:
        """Whose id this is; None if it is none of this sink's tasks."""
        prefix = f"{self.query_id}-{self.sink}-"
        number = name.removeprefix(prefix)
        return int(number) if name.startswith(prefix) and number.isascii() and number.isdigit() else None


def _foreign(found: OffsetAndMetadata, group: str) -> QuireError:
    return QuireError(
        f"group {group} holds offset {found.offset} with the note {found.metadata[:60]!r}, which no sink has left; "
        "nobody else may use the groups of a stream's sink"
    )
