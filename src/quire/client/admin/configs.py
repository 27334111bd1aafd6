"""Settings of topics, brokers and groups: their values, their sources, and changing them one by one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from quire.client.admin.results import ask_controller, error
from quire.client.cluster import ANY, Cluster
from quire.protocol.alter_config_op import AlterConfigOp as AlterConfigOp
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from quire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quire.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from quire.steps import Steps

_TOPICS_PER_REQUEST = 500


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Resource(NamedTuple):
    """A topic by name, a broker by node id; the broker named "" stands for the defaults of all brokers."""

    kind: ResourceType
    name: str


class ConfigSource(IntEnum):
    UNKNOWN = -1
    OTHER = 0
    TOPIC = 1
    BROKER = 2
    BROKER_DEFAULT = 3
    STATIC = 4
    DEFAULT = 5
    BROKER_LOGGER = 6


class ConfigChange(NamedTuple):
    name: str
    operation: AlterConfigOp
    value: str | None = None


@dataclass(slots=True, frozen=True)
class ConfigEntry:
    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    documentation: str | None

    @property
    def is_set(self) -> bool:
        """Whether it was set, and is not Kafka's default."""
        return self.source != ConfigSource.DEFAULT


def describe_configs(
    cluster: Cluster, resource: Resource, names: Iterable[str] | None = None, *, documentation: bool = False
) -> Steps[list[ConfigEntry]]:
    """A resource's settings by name; all settings if `names` is None."""
    node = yield from _answering_node(cluster, resource)
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=resource.kind,
                resource_name=resource.name,
                configuration_keys=None if names is None else list(names),
            )
        ],
        include_documentation=documentation,
    )
    response = yield from cluster.ask(node, request, DescribeConfigsResponse)
    (answer,) = response.results
    failed = error(answer.error_code, answer.error_message, f"the settings of {resource.name} cannot be described")
    if failed is not None:
        raise failed
    entries = [
        ConfigEntry(
            config.name,
            config.value,
            _source(config.config_source),
            config.read_only,
            config.is_sensitive,
            config.documentation,
        )
        for config in answer.configs
    ]
    return sorted(entries, key=lambda entry: entry.name)


def describe_topic_setting(cluster: Cluster, topics: Sequence[str], name: str) -> Steps[dict[str, str]]:
    """The value of one setting by topic; topics that do not exist any more are left out."""
    values = {}
    for first in range(0, len(topics), _TOPICS_PER_REQUEST):
        resources = [
            DescribeConfigsResource(resource_type=ResourceType.TOPIC, resource_name=topic, configuration_keys=[name])
            for topic in topics[first : first + _TOPICS_PER_REQUEST]
        ]
        response = yield from cluster.ask(ANY, DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)
        for answer in response.results:
            for config in answer.configs:
                if config.value is not None:
                    values[answer.resource_name] = config.value
    return values


def alter_configs(
    cluster: Cluster, resource: Resource, changes: Sequence[ConfigChange], *, validate_only: bool = False
) -> Steps[None]:
    """Changes these settings and no others."""
    node = yield from _answering_node(cluster, resource)
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=resource.kind,
                resource_name=resource.name,
                configs=[
                    AlterableConfig(name=change.name, config_operation=change.operation, value=change.value)
                    for change in changes
                ],
            )
        ],
        validate_only=validate_only,
    )
    response = yield from ask_controller(
        cluster,
        request,
        IncrementalAlterConfigsResponse,
        lambda answer: [answered.error_code for answered in answer.responses],
        node=node,
    )
    (answer,) = response.responses
    failed = error(answer.error_code, answer.error_message, f"the settings of {resource.name} were not changed")
    if failed is not None:
        raise failed


def list_config_resources(cluster: Cluster, kinds: Iterable[ResourceType] = ()) -> Steps[list[Resource]]:
    """All resources that have settings of their own."""
    request = ListConfigResourcesRequest(resource_types=[int(kind) for kind in kinds])
    response = yield from cluster.ask(ANY, request, ListConfigResourcesResponse)
    failed = error(response.error_code, None, "the resources with settings cannot be listed")
    if failed is not None:
        raise failed
    return [Resource(ResourceType(found.resource_type), found.resource_name) for found in response.config_resources]


def _answering_node(cluster: Cluster, resource: Resource) -> Steps[int]:
    """Only a broker knows its own static settings; any broker can answer for all other resources."""
    if resource.kind not in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) or not resource.name:
        return ANY
    yield from cluster.refresh([])
    if not resource.name.isdigit() or int(resource.name) not in cluster.metadata.brokers:
        known = ", ".join(f"node {node}" for node in cluster.metadata.brokers)
        raise ApiError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {resource.name}; the cluster has {known}"
        )
    return int(resource.name)


def _source(number: int) -> ConfigSource:
    return ConfigSource(number) if number in ConfigSource._value2member_map_ else ConfigSource.OTHER
