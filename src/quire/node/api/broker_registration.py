"""BrokerRegistration: a broker joins the cluster, fenced, in a new broker epoch.

Only nodes send it. It is refused with INCONSISTENT_CLUSTER_ID, with UNSUPPORTED_VERSION if the broker does not support
the cluster's feature levels, with INVALID_REGISTRATION without directories, and with DUPLICATE_BROKER_REGISTRATION
while another incarnation of the broker has a session.

Versions on controller listeners:
    0  the first version (KIP-631)
    1  migration from ZooKeeper (KIP-866), which this node ignores
    2  data directories (KIP-858)
    3  the broker epoch before the last clean stop (KIP-966)
    4  features whose lowest level is 0
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.authorizer import check_cluster_action
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(node: "Node", context: Context, request: BrokerRegistrationRequest) -> Pending[BrokerRegistrationResponse]:
    check_cluster_action(node.authorizer, context)
    return node.to_controller.register_broker(request, context)
