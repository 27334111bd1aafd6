"""AllocateProducerIds: a broker gets a block of producer ids for its clients.

Only nodes send it. BROKER_ID_NOT_REGISTERED and STALE_BROKER_EPOCH for a broker that must register first.

Versions on controller listeners:
    0  the first version (KIP-730)
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.authorizer import check_cluster_action
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(node: "Node", context: Context, request: AllocateProducerIdsRequest) -> Pending[AllocateProducerIdsResponse]:
    check_cluster_action(node.authorizer, context)
    return node.to_controller.allocate_producer_ids(request, context)
