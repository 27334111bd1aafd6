"""InitProducerId: gives a producer the id and epoch that make its retries and transactions recognisable.

Ids come in blocks from the controller. With a transactional id, the transaction coordinator also increments the
producer epoch, which fences the previous producer of that id (see `coordinators.transaction`).

Versions on broker listeners:
    0  the first version
    1  a throttled client gets its response at once and waits by itself (KIP-219)
    2  flexible encoding
    3  a producer keeps its id and asks for its next epoch (KIP-360)
    4  a producer with an old epoch gets PRODUCER_FENCED (KIP-588)
    5  the client knows TRANSACTION_ABORTABLE (KIP-890)
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
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
            lambda machine, now_ms, new_producer_id: machine.init_producer_id(request, caller, now_ms, new_producer_id),
        )
    if not node.authorizer.allows(context, AclOperation.IDEMPOTENT_WRITE, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "idempotent writing is not allowed")
    return node.producer_ids.next_id().then(_answer)


def refuse(request: InitProducerIdRequest, error: ApiError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)


def _answer(producer_id: int) -> InitProducerIdResponse | ApiError:
    if producer_id == NO_ID:
        return ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "no producer ids are available: try again")
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
