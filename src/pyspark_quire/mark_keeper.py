"""Reads and writes the marks of a sink in a cluster, as offsets of groups without members."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from pyspark_quire.connect import run_patiently
from pyspark_quire.exactly_once import Known, Marks
from pyspark_quire.marker_topic import check_empty, create_if_missing
from pyspark_quire.marks import BatchMark, SinkName, TaskMark
from pyspark_quire.options import MARKER_TOPIC, REQUEST_TIMEOUT_MS, Options
from quire.client.admin.groups import list_groups
from quire.client.admin.transactions import AT_REST, list_transactions, terminate_transaction
from quire.client.backoff import Backoff
from quire.client.cluster import Cluster
from quire.client.group_offsets import OffsetAndMetadata, Offsets, commit_offsets, committed_offsets
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError, ErrorCode
from quire.steps import Steps, sleep

T = TypeVar("T")


class MarkKeeper:
    def __init__(self, client: BlockingClient, options: Options, sink: SinkName) -> None:
        self.topic_partition = TopicPartition(options[MARKER_TOPIC], 0)
        self._client = client
        self._sink = sink
        self._patience_ms = options[REQUEST_TIMEOUT_MS]

    def prepare(self) -> None:
        """Called before the first mark is written."""
        self._run(lambda cluster: create_if_missing(cluster, self.topic_partition.topic))

    def check_empty(self) -> None:
        """Called before the first mark is written."""
        self._run(lambda cluster: check_empty(cluster, self.topic_partition))

    def read(self, tasks: Sequence[int]) -> Marks:
        """The marks of the driver and of these tasks, once no transaction that sets one is open."""
        groups = {self._sink.task(task): task for task in tasks}
        found = self._run(lambda cluster: _stable_offsets(cluster, [self._sink.batches, *groups], self.topic_partition))
        driver = found.pop(self._sink.batches, None)
        return Marks(
            {groups[group]: TaskMark.from_offset(offset, group) for group, offset in found.items()},
            None if driver is None else BatchMark.from_offset(driver, self._sink.batches),
        )

    def leave(self, mark: BatchMark) -> None:
        offsets: Offsets = {self.topic_partition: mark.to_offset()}
        self._run(lambda cluster: commit_offsets(cluster, self._sink.batches, offsets))

    def find_tasks(self) -> Known:
        return self._run(lambda cluster: _find_tasks(cluster, self._sink))

    def fence(self, task: int) -> None:
        self._run(lambda cluster: terminate_transaction(cluster, self._sink.task(task)))

    def _run(self, make: Callable[[Cluster], Steps[T]]) -> T:
        return run_patiently(self._client, make, self._patience_ms)


def _stable_offsets(
    cluster: Cluster, groups: Sequence[str], topic_partition: TopicPartition
) -> Steps[dict[str, OffsetAndMetadata]]:
    """The offset of each group that has one, all groups of one coordinator in one request."""
    found: dict[str, OffsetAndMetadata] = {}
    missing = list(groups)
    backoff = Backoff(cluster.random)
    deadline_ms = cluster.clock.monotonic_ms() + cluster.request_timeout_ms
    while missing:
        answers = yield from committed_offsets(cluster, missing, [topic_partition], require_stable=True)
        missing = []
        for group, offsets in answers.items():
            if not isinstance(offsets, ApiError):
                if topic_partition in offsets:
                    found[group] = offsets[topic_partition]
            elif offsets.code == ErrorCode.UNSTABLE_OFFSET_COMMIT and cluster.clock.monotonic_ms() < deadline_ms:
                missing.append(group)
            else:
                raise offsets
        if missing:
            yield from sleep(cluster.clock, backoff.next_ms())
    return found


def _find_tasks(cluster: Cluster, sink: SinkName) -> Steps[Known]:
    """A task that has left a mark is a group, and a task that may leave one has a transactional id: lists both."""
    groups, unheard = yield from list_groups(cluster)
    transactions, unheard_too = yield from list_transactions(cluster)
    failure = unheard or unheard_too
    if failure is not None:
        raise failure
    ids = {listed.transactional_id: listed.state for listed in transactions}
    tasks = {name: sink.task_number(name) for name in [*ids, *(group.group_id for group in groups)]}
    return Known(
        frozenset(task for task in tasks.values() if task is not None),
        frozenset(task for name in ids if (task := tasks[name]) is not None and ids[name] not in AT_REST),
    )
