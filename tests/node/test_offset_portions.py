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

    response = Slices(SimClock()).run(in_portions(request, commit, refuse))
    assert sizes == [PORTION, PORTION, 4]
    assert response == answer_to(request)


def refuse(request: OffsetCommitRequest, error: ApiError) -> OffsetCommitResponse:
    response = answer_to(request)
    for topic in response.topics:
        for partition in topic.partitions:
            partition.error_code = error.code
    return response


@pytest.mark.parametrize("failing", [2, 3])
def test_a_portion_that_is_refused_ends_it_and_those_before_it_count(failing: int) -> None:
    portions: list[OffsetCommitRequest] = []

    def commit(portion: OffsetCommitRequest) -> Answer:
        portions.append(portion)
        if len(portions) == failing:
            return completed(ApiError(ErrorCode.ILLEGAL_GENERATION, "the group has moved on"))
        return completed(answer_to(portion))

    response = Slices(SimClock()).run(in_portions(request_for(a=PORTION * 4), commit, refuse))
    assert isinstance(response, OffsetCommitResponse)
    (topic,) = response.topics
    committed = PORTION * (failing - 1)
    assert [each.partition_index for each in topic.partitions] == list(range(PORTION * 4))
    assert {each.error_code for each in topic.partitions[:committed]} == {ErrorCode.NONE}
    assert {each.error_code for each in topic.partitions[committed:]} == {ErrorCode.ILLEGAL_GENERATION}
    assert len(portions) == failing, "the rest is not tried"


def test_a_first_portion_that_is_refused_refuses_the_request() -> None:
    def commit(_portion: OffsetCommitRequest) -> Answer:
        return completed(ApiError(ErrorCode.ILLEGAL_GENERATION, "the group has moved on"))

    with pytest.raises(ApiError, match="the group has moved on") as refused:
        Slices(SimClock()).run(in_portions(request_for(a=PORTION * 3), commit, refuse))
    assert refused.value.code is ErrorCode.ILLEGAL_GENERATION
