"""Commits of many offsets: in portions, with one answer."""

import pytest

from quire.node.offset_portions import PORTION, in_portions
from quire.node.slices import Slices
from quire.pending import Pending, completed
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from simulator.clock import SimClock

Answer = Pending[OffsetCommitResponse | ApiError]


def request_for(**topics: int) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                name=name, partitions=[OffsetCommitRequestPartition(partition_index=index) for index in range(count)]
            )
            for name, count in topics.items()
        ],
    )


def answer_to(request: OffsetCommitRequest) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=each.partition_index) for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def test_every_partition_is_committed_once_and_the_answer_has_each_topic_once() -> None:
    request = request_for(a=PORTION + 1, b=3, c=PORTION)
    sizes: list[int] = []

    def commit(portion: OffsetCommitRequest) -> Answer:
        assert portion.group_id == "g"
        sizes.append(sum(len(topic.partitions) for topic in portion.topics))
        return completed(answer_to(portion))

    response = Slices(SimClock()).run(in_portions(request, commit))
    assert sizes == [PORTION, PORTION, 4]
    assert response == answer_to(request)


def test_a_portion_that_is_refused_ends_it() -> None:
    portions: list[OffsetCommitRequest] = []

    def commit(portion: OffsetCommitRequest) -> Answer:
        portions.append(portion)
        if len(portions) == 2:
            return completed(ApiError(ErrorCode.ILLEGAL_GENERATION, "the group has moved on"))
        return completed(answer_to(portion))

    with pytest.raises(ApiError):
        Slices(SimClock()).run(in_portions(request_for(a=PORTION * 3), commit))
    assert len(portions) == 2
