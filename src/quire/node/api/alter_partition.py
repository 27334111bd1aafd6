"""AlterPartition: the leader of a partition asks the controller for another ISR.

Only nodes send it.

Versions on controller listeners:
    2  topics by id; a replica that is fenced or shuts down is refused with INELIGIBLE_REPLICA (KIP-841)
    3  the broker epoch of each member of the ISR (KIP-903)
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.authorizer import check_cluster_action
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(node: "Node", context: Context, request: AlterPartitionRequest) -> Pending[AlterPartitionResponse]:
    check_cluster_action(node.authorizer, context)
    return node.to_controller.alter_partition(request, context)
