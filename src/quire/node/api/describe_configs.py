"""DescribeConfigs: the settings of topics, brokers and groups, with the source of each value and its synonyms.

Versions on broker and controller listeners:
    1  the oldest version served: the source and the synonyms of each value (KIP-226)
    2  a throttled client gets its response at once and waits by itself (KIP-219)
    3  the type and the documentation of each setting (KIP-569)
    4  flexible encoding
"""

from typing import TYPE_CHECKING

from quire.config.group_config import describe_group
from quire.config.sources import ConfigEntry
from quire.config.topic_config import TopicConfig
from quire.controller.topic_names import check_topic_name
from quire.node.config_resources import ConfigResource, check_may_describe
from quire.node.context import Context
from quire.node.entries import entries
from quire.node.slices import Work
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: DescribeConfigsRequest) -> Work[DescribeConfigsResponse]:
    # A resource that is named twice is described once: a name of a few bytes stands for tens of kilobytes.
    wanted = {(resource.resource_type, resource.resource_name): resource for resource in request.resources}
    results = yield from entries(
        wanted,
        lambda key: _describe(node, context, request, wanted[key]),
        lambda key, error: _failed(wanted[key], error),
        lambda results: DescribeConfigsResponse(results=results),
        context.api_version,
    )
    return DescribeConfigsResponse(results=results)


def refuse(request: DescribeConfigsRequest, error: ApiError) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_failed(resource, error) for resource in request.resources])


def _describe(
    node: "Node", context: Context, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    try:
        check_may_describe(node.authorizer, context, resource.resource_type, resource.resource_name)
        entries = _entries(node, resource)
    except ApiError as error:
        return _failed(resource, error)
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_message=None,
        configs=[_config(entry, request) for entry in entries],
    )


def _entries(node: "Node", resource: DescribeConfigsResource) -> list[ConfigEntry]:
    name, keys = resource.resource_name, resource.configuration_keys or None
    if resource.resource_type == ConfigResource.TOPIC:
        check_topic_name(name)
        if node.image.topic(name) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{name}' does not exist")
        return TopicConfig(node.image.topic_configs(name), node.config).describe(keys)
    if resource.resource_type == ConfigResource.BROKER:
        if name == "":
            return node.config.describe_cluster_default(keys)
        if name != str(node.node_id):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"this is broker {node.node_id}: ask broker {name}")
        return node.config.describe(keys)
    if resource.resource_type == ConfigResource.GROUP:
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the name of the group is missing")
        return describe_group(node.image.group_configs(name), node.config, keys)
    if resource.resource_type in (ConfigResource.BROKER_LOGGER, ConfigResource.CLIENT_METRICS):
        return []
    raise ApiError(ErrorCode.INVALID_REQUEST, f"resource type {resource.resource_type} has no settings")


def _config(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in synonyms
        ],
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation else None,
    )


def _failed(resource: DescribeConfigsResource, error: ApiError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
