"""UpdateFeatures: finalize a feature's level for the whole cluster."""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, Operation, Resource
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: UpdateFeaturesRequest) -> Pending[UpdateFeaturesResponse]:
    if not node.authorizer.allows(context, Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "changing the cluster's features is not allowed")
    return node.controller.update_features(request, node.clock.now_ms())


def refuse(request: UpdateFeaturesRequest, error: ApiError) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)
