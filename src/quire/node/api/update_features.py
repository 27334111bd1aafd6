"""UpdateFeatures: changes the level of features for the whole cluster.

Versions on broker and controller listeners:
    0  the first version (KIP-584)
    1  kinds of upgrades and downgrades; validation only (KIP-778)
    2  all features or none: one error for the whole request
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(node: "Node", context: Context, request: UpdateFeaturesRequest) -> Pending[UpdateFeaturesResponse]:
    if not node.authorizer.allows(context, AclOperation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "changing the cluster's features is not allowed")
    return node.to_controller.update_features(request, context)
