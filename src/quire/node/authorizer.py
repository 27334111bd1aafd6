"""The one place where a request is allowed or refused.

Every handler asks here before it touches a resource. Today everybody may do everything, as in an Apache Kafka without
an authorizer; access control lists will answer here, and no handler changes for it.
"""

from enum import IntEnum

from quire.node.context import Context


class Operation(IntEnum):
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
"""The name by which Kafka's access control lists call the cluster as a resource."""

TOPIC_OPERATIONS = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
GROUP_OPERATIONS = (
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
CLUSTER_OPERATIONS = (
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)

_OPERATIONS = {
    Resource.TOPIC: TOPIC_OPERATIONS,
    Resource.GROUP: GROUP_OPERATIONS,
    Resource.CLUSTER: CLUSTER_OPERATIONS,
}


class Authorizer:
    __slots__ = ()

    def allows(self, context: Context, operation: Operation, resource: Resource, name: str) -> bool:
        return True

    def operations(self, context: Context, resource: Resource, name: str) -> int:
        """The allowed operations as the bit field that Metadata and DescribeCluster answer with."""
        every = _OPERATIONS[resource]
        return sum(1 << operation for operation in every if self.allows(context, operation, resource, name))
