"""ListConfigResources: the resources that have settings, by type.

Versions on broker listeners:
    0  the first version: client metrics only (KIP-714), of which this node has none
    1  all types of resources, chosen by the client (KIP-1142)
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.config_resources import ConfigResource
from quire.node.context import Context
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages import list_config_resources as messages

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(
    node: "Node", context: Context, request: messages.ListConfigResourcesRequest
) -> messages.ListConfigResourcesResponse:
    if not node.authorizer.allows(context, AclOperation.DESCRIBE_CONFIGS, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "describing settings is not allowed")
    if context.api_version == 0:
        return messages.ListConfigResourcesResponse()
    resources = [
        messages.ConfigResource(resource_name=name, resource_type=kind)
        for kind in dict.fromkeys(request.resource_types or ConfigResource)
        for name in _names(node, kind)
    ]
    return messages.ListConfigResourcesResponse(config_resources=resources)


def refuse(request: messages.ListConfigResourcesRequest, error: ApiError) -> messages.ListConfigResourcesResponse:
    return messages.ListConfigResourcesResponse(error_code=error.code)


def _names(node: "Node", kind: int) -> list[str]:
    if kind == ConfigResource.TOPIC:
        return [topic.name for topic in node.image.topics_sorted()]
    if kind in (ConfigResource.BROKER, ConfigResource.BROKER_LOGGER):
        return [str(broker.broker_id) for broker in node.image.brokers_sorted()]
    if kind == ConfigResource.GROUP:
        return sorted(resource.name for resource in node.image.configs if resource.type == ConfigResource.GROUP)
    if kind == ConfigResource.CLIENT_METRICS:
        return []
    raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"resource type {kind} is unknown")
