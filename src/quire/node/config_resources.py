"""The things that have settings: topics, brokers and groups, as DescribeConfigs and AlterConfigs name them."""

from enum import IntEnum

from quire.node.authorizer import CLUSTER_NAME, Authorizer, Operation, Resource
from quire.node.context import Context
from quire.protocol.errors import ApiError, ErrorCode


class ConfigResource(IntEnum):
    """Kafka's ConfigResource type codes."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def check_may_alter(authorizer: Authorizer, context: Context, resource_type: int, name: str) -> None:
    _check(authorizer, context, resource_type, name, Operation.ALTER_CONFIGS)


def check_may_describe(authorizer: Authorizer, context: Context, resource_type: int, name: str) -> None:
    _check(authorizer, context, resource_type, name, Operation.DESCRIBE_CONFIGS)


def _check(authorizer: Authorizer, context: Context, resource_type: int, name: str, operation: Operation) -> None:
    if resource_type == ConfigResource.TOPIC:
        if not authorizer.allows(context, operation, Resource.TOPIC, name):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"the settings of topic {name} are not yours")
    elif resource_type == ConfigResource.GROUP:
        if not authorizer.allows(context, operation, Resource.GROUP, name):
            raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED, f"the settings of group {name} are not yours")
    elif not authorizer.allows(context, operation, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "the cluster's settings are not yours")
