"""Fetches ranges of offsets for a task: all at once, or one by one if something is missing.

Together they need one metadata request and one fetch for each leader, so a task that reads a little of many partitions
does not wait for each in turn.
"""

from collections.abc import Iterator, Sequence

from pyspark_quire.bounds import Bounds, find_log
from pyspark_quire.connect import run_patiently
from pyspark_quire.errors import QuireError
from pyspark_quire.loss import OPEN_ADVICE, LossPolicy
from pyspark_quire.options import (
    FAIL_ON_DATA_LOSS,
    FETCH_MAX_BYTES,
    FETCH_MAX_WAIT_MS,
    ISOLATION_LEVEL,
    POLL_TIMEOUT_MS,
    Options,
)
from pyspark_quire.splits import Range
from pyspark_quire.subscription import ASK_AGAIN_MS, ASK_AGAIN_TIMES
from quire.client.cluster import Cluster
from quire.client.consumer import Consumer, ConsumerConfig, Start
from quire.client.errors import TimedOutError
from quire.client.fetched import Fetched
from quire.client.metadata import Topic
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.uuids import to_text
from quire.steps import Steps, sleep

_GONE = (
    ErrorCode.OFFSET_OUT_OF_RANGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
)
_REFUSED_MOST = 20
"""How often an existing offset may be refused, as by a leader that has just started, before it is an error."""


def fetch_ranges(client: BlockingClient, options: Options, parts: Sequence[Range]) -> Iterator[Fetched]:
    """All records of the ranges, which are of different partitions, each in the order of its offsets.

    `LossPolicy` decides about records that no longer exist.
    """
    reached = {part.topic_partition: part.start for part in parts}
    try:
        for fetched in _fetch(client, options, parts, [part.start for part in parts]):
            reached[fetched.topic_partition] = fetched.next_offset
            yield fetched
    except ApiError as error:
        if error.code not in _GONE:
            raise QuireError(str(error)) from error
        loss = LossPolicy(options[FAIL_ON_DATA_LOSS])
        for part in parts:
            yield from _fetch_past_loss(client, options, part, reached[part.topic_partition], loss)


def _fetch_past_loss(
    client: BlockingClient, options: Options, part: Range, position: int, loss: LossPolicy
) -> Iterator[Fetched]:
    refused: ApiError | None = None
    for _ in range(_REFUSED_MOST):
        part, position = _remaining_part(client, options, part, position, loss)
        if position >= part.end:
            return
        try:
            for fetched in _fetch(client, options, [part], [position]):
                position = fetched.next_offset
                yield fetched
            return
        except ApiError as error:
            if error.code not in _GONE:
                raise QuireError(f"{part.topic_partition} cannot be read at offset {position}: {error}") from error
            refused = error
    raise QuireError(f"{part.topic_partition} cannot be read at offset {position}: {refused}") from refused


def _fetch(
    client: BlockingClient, options: Options, parts: Sequence[Range], starts: Sequence[int]
) -> Iterator[Fetched]:
    config = ConsumerConfig(
        read_committed=options[ISOLATION_LEVEL] == "read_committed",
        max_wait_ms=options[FETCH_MAX_WAIT_MS],
        partition_max_bytes=options[FETCH_MAX_BYTES],
    )
    consumer = Consumer(client.cluster, config)
    patience_ms = options[POLL_TIMEOUT_MS]
    beginnings = {part.topic_partition: Start(offset=start) for part, start in zip(parts, starts, strict=True)}
    ends = {part.topic_partition: part.end for part in parts}
    try:
        run_patiently(client, lambda _: consumer.assign(beginnings, ends), patience_ms)
        while left := [part for part in parts if consumer.positions[part.topic_partition] < part.end]:
            try:
                client.loop.run_until(consumer.arrival(), patience_ms)
            except TimedOutError:
                sentence = (
                    f"{left[0].topic_partition} returned nothing within {patience_ms / 1000:g} s at offset "
                    f"{consumer.positions[left[0].topic_partition]}, although it should have records up to "
                    f"{left[0].end}"
                )
                if _end_too_early(client, left, patience_ms):
                    raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, sentence) from None
                if config.read_committed:
                    sentence += f"; if a transaction is open there, {OPEN_ADVICE}"
                raise QuireError(sentence) from None
            taken = consumer.poll()
            _check_ids(client.cluster, parts)
            yield from taken
    finally:
        consumer.close()


def _check_ids(cluster: Cluster, parts: Sequence[Range]) -> None:
    """The records may be from a new topic of the same name: the client follows that, but a task must not."""
    for part in parts:
        topic = cluster.metadata.topics.get(part.topic_partition.topic)
        if topic is None or to_text(topic.topic_id) != part.topic_id:
            raise ApiError(
                ErrorCode.INCONSISTENT_TOPIC_ID, f"topic {part.topic_partition.topic} was deleted or created again"
            )


def _end_too_early(client: BlockingClient, parts: Sequence[Range], patience_ms: float) -> bool:
    """Whether a partition was truncated after the plan was made; an open transaction does not count."""
    extent = run_patiently(
        client, lambda cluster: find_log(cluster, [part.topic_partition for part in parts]), patience_ms
    )
    return any(extent[part.topic_partition].latest < part.end for part in parts)


def _remaining_part(
    client: BlockingClient, options: Options, part: Range, position: int, loss: LossPolicy
) -> tuple[Range, int]:
    """The rest of a range, and where to start; raises if records are lost, unless the user accepts that."""
    if position >= part.end:
        return part, position
    found = run_patiently(client, lambda cluster: find_part(cluster, part), options[POLL_TIMEOUT_MS])
    if found is None:
        loss.deleted(part.topic_partition, position, part.end)
        return part, part.end
    topic_id, bounds = found
    if topic_id != part.topic_id:
        loss.recreated(part.topic_partition, position, part.topic_id, topic_id, part.end)
        return part, part.end
    if position < bounds.earliest:
        loss.overtaken(part.topic_partition, position, min(bounds.earliest, part.end))
        position = bounds.earliest
    if part.end > bounds.latest:
        loss.beyond(part.topic_partition, part.end, bounds.latest)
        part = part._replace(end=bounds.latest)
    return part, position


def find_part(cluster: Cluster, part: Range) -> Steps[tuple[str, Bounds] | None]:
    """The id of a range's topic and the offsets of its partition; None if it no longer exists.

    A broker that has just started may not know it yet, so the request is repeated a few times.
    """
    topic: Topic | None = None
    for _ in range(ASK_AGAIN_TIMES):
        yield from cluster.refresh([part.topic_partition.topic])
        topic = cluster.metadata.topics.get(part.topic_partition.topic)
        if (
            topic is not None
            and to_text(topic.topic_id) == part.topic_id
            and part.topic_partition.partition in topic.partitions
        ):
            break
        yield from sleep(cluster.clock, ASK_AGAIN_MS)
    if topic is None or part.topic_partition.partition not in topic.partitions:
        return None
    extent = yield from find_log(cluster, [part.topic_partition])
    return to_text(topic.topic_id), extent[part.topic_partition]
