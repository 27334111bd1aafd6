"""Decides whether a client may perform an operation on a resource.

Every handler calls the authorizer before it touches a resource. Today it allows everything, as Apache Kafka does
without an authorizer. Access control lists will be checked here, without changes to the handlers.
"""

from enum import IntEnum

from quire.node.context import Context
from quire.protocol.errors import ApiError, ErrorCode


class AclOperation(IntEnum):
    """Kafka's AclOperation codes."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class Resource(IntEnum):
    """Kafka's ResourceType codes."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


CLUSTER_NAME = "kafka-cluster"
"""The name of the cluster as a resource in Kafka's access control lists."""

TOPIC_OPERATIONS = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
GROUP_OPERATIONS = (
    AclOperation.READ,
    AclOperation.DELETE,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
CLUSTER_OPERATIONS = (
    AclOperation.CREATE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
    AclOperation.IDEMPOTENT_WRITE,
)

_OPERATIONS = {
    Resource.TOPIC: TOPIC_OPERATIONS,
    Resource.GROUP: GROUP_OPERATIONS,
    Resource.CLUSTER: CLUSTER_OPERATIONS,
}


class Authorizer:
    __slots__ = ()

    def allows(self, context: Context, operation: AclOperation, resource: Resource, name: str) -> bool:
        return True

    def operations(self, context: Context, resource: Resource, name: str) -> int:
        """The allowed operations as a bit field, in the form of Metadata and DescribeCluster."""
        every = _OPERATIONS[resource]
        return sum(1 << operation for operation in every if self.allows(context, operation, resource, name))


def check_cluster_action(authorizer: Authorizer, context: Context) -> None:
    """For requests that only the nodes of the cluster send."""
    if not authorizer.allows(context, AclOperation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "only the nodes of the cluster may send this request")
