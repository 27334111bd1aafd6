"""DescribeConfigs: each resource once, with an error of its own where it cannot be described."""

import pytest

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.node.config_resources import ConfigResource
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode


def describe(node: SimulatedNode, kind: int, name: str, **more: bool) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name)
    request = DescribeConfigsRequest(resources=[resource], **more)
    (result,) = node.call(request, 4, DescribeConfigsResponse).results
    return result


def test_settings_requested_twice_are_returned_once(node: SimulatedNode) -> None:
    broker = DescribeConfigsResource(resource_type=ConfigResource.BROKER, resource_name=str(node.node.node_id))
    unknown = DescribeConfigsResource(resource_type=ConfigResource.TOPIC, resource_name="unknown")
    results = node.call(DescribeConfigsRequest(resources=[broker, unknown] * 3), 4, DescribeConfigsResponse).results
    assert [result.resource_type for result in results] == [ConfigResource.BROKER, ConfigResource.TOPIC]


def test_synonyms_and_documentation_are_described_on_request(node: SimulatedNode) -> None:
    node.create_topic("t", retention_ms="1000")
    plain = {each.name: each for each in describe(node, ConfigResource.TOPIC, "t").configs}["retention.ms"]
    assert (plain.value, plain.synonyms, plain.documentation) == ("1000", [], None)
    whole = describe(node, ConfigResource.TOPIC, "t", include_synonyms=True, include_documentation=True)
    setting = {each.name: each for each in whole.configs}["retention.ms"]
    assert next((each.name, each.value) for each in setting.synonyms) == ("retention.ms", "1000")
    assert setting.documentation


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (ConfigResource.TOPIC, "unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic 'unknown' does not exist"),
        (ConfigResource.BROKER, "2", ErrorCode.INVALID_REQUEST, "this is broker 1: ask broker 2"),
        (ConfigResource.GROUP, "", ErrorCode.INVALID_REQUEST, "the name of the group is missing"),
        (7, "t", ErrorCode.INVALID_REQUEST, "resource type 7 has no settings"),
    ],
)
def test_a_resource_that_cannot_be_described_is_refused(
    node: SimulatedNode, kind: int, name: str, code: ErrorCode, message: str
) -> None:
    result = describe(node, kind, name)
    assert (result.error_code, result.error_message, result.configs) == (code, message, [])


@pytest.mark.parametrize("kind", [ConfigResource.BROKER_LOGGER, ConfigResource.CLIENT_METRICS])
def test_loggers_and_client_metrics_have_no_settings(node: SimulatedNode, kind: int) -> None:
    result = describe(node, kind, "1")
    assert (result.error_code, result.configs) == (ErrorCode.NONE, [])


@pytest.mark.parametrize(
    ("kind", "name", "denied", "code"),
    [
        (ConfigResource.TOPIC, "t", "t", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (ConfigResource.GROUP, "g", "g", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (ConfigResource.BROKER, "1", CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
def test_settings_that_may_not_be_described_are_refused(
    node: SimulatedNode, kind: int, name: str, denied: str, code: ErrorCode
) -> None:
    node.create_topic("t")
    deny(node, (AclOperation.DESCRIBE_CONFIGS, denied))
    assert describe(node, kind, name).error_code == code
