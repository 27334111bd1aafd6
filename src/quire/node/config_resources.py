"""The types of resources that have settings, and the check whether a client may describe or alter them."""

from enum import IntEnum

from quire.node.authorizer import CLUSTER_NAME, AclOperation, Authorizer, Resource
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
    _check(authorizer, context, resource_type, name, AclOperation.ALTER_CONFIGS, "altering")


def check_may_describe(authorizer: Authorizer, context: Context, resource_type: int, name: str) -> None:
    _check(authorizer, context, resource_type, name, AclOperation.DESCRIBE_CONFIGS, "describing")


def _check(
    authorizer: Authorizer, context: Context, resource_type: int, name: str, operation: AclOperation, verb: str
) -> None:
    if resource_type == ConfigResource.TOPIC:
        if not authorizer.allows(context, operation, Resource.TOPIC, name):
            message = f"{verb} the settings of topic {name} is not allowed"
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, message)
    elif resource_type == ConfigResource.GROUP:
        if not authorizer.allows(context, operation, Resource.GROUP, name):
            message = f"{verb} the settings of group {name} is not allowed"
            raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED, message)
    elif not authorizer.allows(context, operation, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"{verb} the cluster's settings is not allowed")
