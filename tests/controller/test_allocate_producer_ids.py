"""Blocks of producer ids: each id is given once."""

from quire.controller.producer_ids import allocate_producer_ids
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from tests.controller.images import after, cluster


def test_blocks_follow_each_other() -> None:
    image = cluster()
    starts = []
    for _ in range(3):
        result = allocate_producer_ids(image, AllocateProducerIdsRequest(broker_id=1, broker_epoch=5))
        starts.append((result.response.producer_id_start, result.response.producer_id_len))
        image = after(image, result.records)
    assert starts == [(0, 1000), (1000, 1000), (2000, 1000)]
    assert image.next_producer_id == 3000


def test_only_a_registered_broker_gets_ids() -> None:
    stale = allocate_producer_ids(cluster(), AllocateProducerIdsRequest(broker_id=1, broker_epoch=4))
    unknown = allocate_producer_ids(cluster(), AllocateProducerIdsRequest(broker_id=9, broker_epoch=5))
    assert (stale.response.error_code, stale.records) == (ErrorCode.STALE_BROKER_EPOCH, [])
    assert (unknown.response.error_code, unknown.records) == (ErrorCode.BROKER_ID_NOT_REGISTERED, [])
