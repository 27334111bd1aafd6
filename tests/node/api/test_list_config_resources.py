"""ListConfigResources: names of resources by type."""

import pytest

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.node.config_resources import ConfigResource
from quire.protocol.alter_config_op import AlterConfigOp
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quire.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode

TOPIC = (ConfigResource.TOPIC, "t")
BROKER = (ConfigResource.BROKER, "1")
LOGGER = (ConfigResource.BROKER_LOGGER, "1")
GROUP = (ConfigResource.GROUP, "g")


@pytest.fixture
def node() -> SimulatedNode:
    """With a topic, and a group that has a setting of its own."""
    node = SimulatedNode().start()
    node.create_topic("t")
    config = AlterableConfig(name="consumer.session.timeout.ms", config_operation=AlterConfigOp.SET, value="50000")
    group = AlterConfigsResource(resource_type=ConfigResource.GROUP, resource_name="g", configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[group])
    (answer,) = node.call(request, 1, IncrementalAlterConfigsResponse).responses
    assert answer.error_code == ErrorCode.NONE
    return node


def listed(node: SimulatedNode, *kinds: int, version: int = 1) -> list[tuple[int, str]]:
    request = ListConfigResourcesRequest(resource_types=list(kinds))
    answer = node.call(request, version, ListConfigResourcesResponse)
    assert answer.error_code == ErrorCode.NONE
    return [(each.resource_type, each.resource_name) for each in answer.config_resources]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([], [TOPIC, BROKER, LOGGER, GROUP]),
        ([ConfigResource.GROUP, ConfigResource.TOPIC, ConfigResource.GROUP], [GROUP, TOPIC]),
        ([ConfigResource.CLIENT_METRICS], []),
    ],
)
def test_resources_are_listed_by_type(node: SimulatedNode, kinds: list[int], expected: list[tuple[int, str]]) -> None:
    assert listed(node, *kinds) == expected


def test_version_0_lists_client_metrics_only(node: SimulatedNode) -> None:
    assert listed(node, version=0) == []


def test_an_unknown_type_is_refused(node: SimulatedNode) -> None:
    answer = node.call(ListConfigResourcesRequest(resource_types=[7]), 1, ListConfigResourcesResponse)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])


def test_listing_resources_needs_describe_configs(node: SimulatedNode) -> None:
    deny(node, (AclOperation.DESCRIBE_CONFIGS, CLUSTER_NAME))
    answer = node.call(ListConfigResourcesRequest(), 1, ListConfigResourcesResponse)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
