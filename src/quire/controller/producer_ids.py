"""AllocateProducerIds: brokers get producer ids in blocks, and no id is ever given twice."""

from quire.controller.controller_result import ControllerResult
from quire.metadata.image import ClusterImage
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from quire.protocol.messages.metadata_records import ProducerIdsRecord

BLOCK_SIZE = 1000
MAX_PRODUCER_ID = (1 << 63) - 1


def allocate_producer_ids(
    image: ClusterImage, request: AllocateProducerIdsRequest
) -> ControllerResult[AllocateProducerIdsResponse]:
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        return ControllerResult(AllocateProducerIdsResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED))
    if broker.epoch != request.broker_epoch:
        return ControllerResult(AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    first = image.next_producer_id
    if first > MAX_PRODUCER_ID - BLOCK_SIZE:
        return ControllerResult(AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    record = ProducerIdsRecord(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=first + BLOCK_SIZE
    )
    return ControllerResult(AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE), [record])
