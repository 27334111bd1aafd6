"""AssignReplicasToDirs: a broker reports the data directory of each of its replicas.

Only nodes send it, after they have created the logs of new partitions in one of several directories.

Versions on controller listeners:
    0  the first version (KIP-858)
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.authorizer import check_cluster_action
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(
    node: "Node", context: Context, request: AssignReplicasToDirsRequest
) -> Pending[AssignReplicasToDirsResponse]:
    check_cluster_action(node.authorizer, context)
    return node.to_controller.assign_replicas_to_dirs(request, context)
