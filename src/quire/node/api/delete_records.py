"""DeleteRecords: moves a partition's log start offset forward, so that readers no longer see the records before it.

The response is sent when the new start is in the checkpoint of the data directory. Until then readers see the old one.
So records that were reported as deleted do not reappear after a crash.

Versions on broker listeners:
    0  the first version
    1  a throttled client gets its response at once and waits by itself (KIP-219)
    2  flexible encoding
"""

from functools import partial
from typing import TYPE_CHECKING

from quire.node.authorizer import AclOperation, Resource
from quire.node.context import Context
from quire.node.slices import Work
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from quire.seams import Timer

if TYPE_CHECKING:
    from quire.node.node import Node

Waiting = list[tuple[DeleteRecordsPartitionResult, Pending[int]]]


def handle(node: "Node", context: Context, request: DeleteRecordsRequest) -> Work[DeleteRecordsResponse]:
    waiting: Waiting = []
    response = DeleteRecordsResponse()
    for topic in request.topics:
        answers = DeleteRecordsTopicResult(name=topic.name)
        response.topics.append(answers)
        for wanted in topic.partitions:
            answers.partitions.append(_delete(node, context, topic.name, wanted, waiting))
            yield None
    if waiting:
        yield _when_done(node, response, waiting, request.timeout_ms)
    return response


def refuse(request: DeleteRecordsRequest, error: ApiError) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=wanted.partition_index, low_watermark=-1, error_code=error.code
                    )
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _delete(
    node: "Node", context: Context, topic: str, wanted: DeleteRecordsPartition, waiting: Waiting
) -> DeleteRecordsPartitionResult:
    answer = DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=-1)
    try:
        if not node.authorizer.allows(context, AclOperation.DELETE, Resource.TOPIC, topic):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"deleting from {topic} is not allowed")
        partition = node.partitions.leader(topic, None, wanted.partition_index).partition
        waiting.append((answer, node.partitions.delete_records(partition, wanted.offset)))
    except ApiError as error:
        answer.error_code = error.code
    return answer


def _when_done(
    node: "Node", response: DeleteRecordsResponse, waiting: Waiting, timeout_ms: int
) -> Pending[DeleteRecordsResponse]:
    """The response, when the start of every partition has moved or the client's timeout has passed."""
    pending: Pending[DeleteRecordsResponse] = Pending()
    left = len(waiting)
    timer: Timer | None = None

    def answer_now() -> None:
        if timer is not None:
            timer.cancel()
        pending.complete_once(response)

    def moved(answer: DeleteRecordsPartitionResult, start_offset: int) -> None:
        nonlocal left
        answer.error_code, answer.low_watermark = ErrorCode.NONE, start_offset
        left -= 1
        if left == 0:
            answer_now()

    for answer, started in waiting:
        answer.error_code = ErrorCode.REQUEST_TIMED_OUT
        started.when_done(partial(moved, answer))
    if not pending.done:
        timer = node.clock.call_later(timeout_ms, answer_now)
    return pending
