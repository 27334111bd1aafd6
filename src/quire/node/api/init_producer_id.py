"""InitProducerId: an id under which a producer's retries are recognised.

Ids come in blocks from the controller. A transactional id needs a transaction coordinator, which this node does not
have yet; such a producer is told so.
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, Operation, Resource
from quire.node.context import Context
from quire.node.producer_ids import NO_ID
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from quire.node.node import Node

Result = InitProducerIdResponse | Pending[InitProducerIdResponse]


def handle(node: "Node", context: Context, request: InitProducerIdRequest) -> Result:
    if request.transactional_id is not None:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "this node has no transaction coordinator")
    if not node.authorizer.allows(context, Operation.IDEMPOTENT_WRITE, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "idempotent writing is not allowed")
    return node.producer_ids.next_id().then(_answer)


def refuse(request: InitProducerIdRequest, error: ApiError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)


def _answer(producer_id: int) -> InitProducerIdResponse:
    if producer_id == NO_ID:
        return InitProducerIdResponse(
            error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, producer_id=-1, producer_epoch=-1
        )
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
