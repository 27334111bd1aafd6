"""InitProducerId: an id under which a producer's retries are recognised, and its transactions kept apart.

Ids come in blocks from the controller. With a transactional id the producer also gets an epoch, and whoever had that
transactional id before is fenced (see `coordinators.transaction`).
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, Operation, Resource
from quire.node.context import Context
from quire.node.group_requests import caller_of
from quire.node.producer_ids import NO_ID
from quire.node.transaction_requests import run_with_producer_id
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(
    node: "Node", context: Context, request: InitProducerIdRequest
) -> Pending[InitProducerIdResponse | ApiError]:
    if request.transactional_id is not None:
        caller = caller_of(context)
        return run_with_producer_id(
            node,
            context,
            request.transactional_id,
            lambda machine, now_ms, fresh_id: machine.init_producer_id(request, caller, now_ms, fresh_id),
        )
    if not node.authorizer.allows(context, Operation.IDEMPOTENT_WRITE, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "idempotent writing is not allowed")
    return node.producer_ids.next_id().then(_answer)


def refuse(request: InitProducerIdRequest, error: ApiError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)


def _answer(producer_id: int) -> InitProducerIdResponse | ApiError:
    if producer_id == NO_ID:
        return ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "there are no producer ids at hand: try again")
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
