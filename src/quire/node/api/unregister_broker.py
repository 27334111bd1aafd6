"""UnregisterBroker: removes the registration of a broker that will not return.

A broker passes the request on to the active controller. A broker that still runs registers again.

Versions on broker and controller listeners:
    0  the first version (KIP-631)
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(node: "Node", context: Context, request: UnregisterBrokerRequest) -> Pending[UnregisterBrokerResponse]:
    if not node.authorizer.allows(context, AclOperation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "unregistering brokers is not allowed")
    return node.to_controller.unregister_broker(request, context)
