"""BrokerHeartbeat: a broker is alive, how far it follows the metadata log, and whether it wants to stop.

Only nodes send it. BROKER_ID_NOT_REGISTERED and STALE_BROKER_EPOCH tell the broker to register again.

Versions on controller listeners:
    0  the first version (KIP-631)
    1  directories that have failed (KIP-858)
    2  directories that take no new replicas (KIP-1066)
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.authorizer import check_cluster_action
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(node: "Node", context: Context, request: BrokerHeartbeatRequest) -> Pending[BrokerHeartbeatResponse]:
    check_cluster_action(node.authorizer, context)
    return node.to_controller.broker_heartbeat(request, context)
