"""OffsetCommit and OffsetFetch, asked and checked."""

from collections.abc import Sequence

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from quire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from simulator.clients.client import SimClient
from simulator.clients.coordinator import NOT_NOW
from simulator.clients.routes import group as coordinator_of
from simulator.ledger import PartitionBook
from simulator.violation import Violation

FIRST_FETCH_WITH_MANY_GROUPS = 8
FIRST_FETCH_OF_STABLE_OFFSETS = 7
FIRST_COMMIT_WITH_INSTANCES = 7

Found = tuple[int, str]
"""Offset (-1: none) and metadata."""


async def commit_offsets(
    client: SimClient,
    group: str,
    offsets: dict[PartitionBook, int],
    *,
    member_id: str = "",
    instance_id: str | None = None,
    generation: int = -1,
    at_least: int = 0,
    refusals: Sequence[ErrorCode] = (),
) -> ErrorCode:
    """One attempt, for topics that stay; NONE if all are committed. Raises Lost if the outcome is unknown."""
    await client.connected(coordinator_of(group))
    ledger = client.scene.offsets
    attempts = {book: ledger.attempt(group, book, offset) for book, offset in offsets.items()}
    request = OffsetCommitRequest(
        group_id=group,
        member_id=member_id,
        group_instance_id=instance_id,
        generation_id_or_member_epoch=generation,
        topics=[
            OffsetCommitRequestTopic(
                name=book.topic.name,
                topic_id=book.topic.topic_id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=book.index, committed_offset=attempt.offset, committed_metadata=attempt.tag
                    )
                ],
            )
            for book, attempt in attempts.items()
        ],
    )
    oldest = at_least if instance_id is None else max(at_least, FIRST_COMMIT_WITH_INSTANCES)
    answer = await client.ask(request, coordinator_of(group), at_least=oldest)
    codes = [each.error_code for topic in answer.topics for each in topic.partitions]
    if len(codes) != len(attempts):
        raise Violation(
            "every partition of a request is answered", f"{client.name} got {len(codes)} of {len(attempts)}"
        )
    outcome = ErrorCode.NONE
    for attempt, code in zip(attempts.values(), codes, strict=True):
        error = client.expect(code, f"OffsetCommit of {group}", *NOT_NOW, *client.excuses, *refusals)
        if error is ErrorCode.NONE:
            ledger.acknowledged(attempt, copies_left=client.sent_twice)
        elif error in refusals:
            ledger.refused(attempt, copies_left=client.sent_twice)
        outcome = error if error is not ErrorCode.NONE else outcome
    return outcome


async def fetch_offsets(
    client: SimClient, group: str, books: Sequence[PartitionBook], *, stable: bool
) -> dict[PartitionBook, Found] | None:
    """One attempt; the checked result, or None if the coordinator cannot answer now."""
    wire = await client.connected(coordinator_of(group))
    leadership = client.scene.ledger.coordinators.of_group(group)
    epoch = leadership.epoch_of(wire.node)
    version = client.version(OffsetFetchRequest, FIRST_FETCH_OF_STABLE_OFFSETS if stable else 0)
    asked_tick = client.scene.ledger.ticks.next()
    request = _fetch_request(group, books, version, stable)
    answer = await client.ask(request, coordinator_of(group), at_least=version, at_most=version)
    found = _found(client, group, books, answer, version)
    if found is None:
        return None
    for book, (offset, tag) in found.items():
        offset_book = client.scene.offsets.book(group, book)
        client.scene.offsets.fetched(
            offset_book, asked_tick, offset, tag, stable=stable, deposed=not leadership.is_current(epoch)
        )
    return found


def _fetch_request(group: str, books: Sequence[PartitionBook], version: int, stable: bool) -> OffsetFetchRequest:
    if version < FIRST_FETCH_WITH_MANY_GROUPS:
        topics = [OffsetFetchRequestTopic(name=book.topic.name, partition_indexes=[book.index]) for book in books]
        return OffsetFetchRequest(group_id=group, topics=topics, require_stable=stable)
    asked = OffsetFetchRequestGroup(
        group_id=group,
        topics=[
            OffsetFetchRequestTopics(name=book.topic.name, topic_id=book.topic.topic_id, partition_indexes=[book.index])
            for book in books
        ],
    )
    return OffsetFetchRequest(groups=[asked], require_stable=stable)


def _found(
    client: SimClient, group: str, books: Sequence[PartitionBook], answer: OffsetFetchResponse, version: int
) -> dict[PartitionBook, Found] | None:
    one = answer.groups[0] if version >= FIRST_FETCH_WITH_MANY_GROUPS else answer
    what = f"OffsetFetch of {group}"
    if client.expect(one.error_code, what, *NOT_NOW, *client.excuses) is not ErrorCode.NONE:
        return None
    partitions = [each for topic in one.topics for each in topic.partitions]
    if [each.partition_index for each in partitions] != [book.index for book in books]:
        raise Violation("every partition of a request is answered", f"{client.name} asked for {books}")
    found: dict[PartitionBook, Found] = {}
    for book, each in zip(books, partitions, strict=True):
        allowed = (ErrorCode.UNSTABLE_OFFSET_COMMIT, *NOT_NOW, *client.excuses)
        if client.expect(each.error_code, what, *allowed) is not ErrorCode.NONE:
            return None
        found[book] = (each.committed_offset, each.metadata or "")
    return found
