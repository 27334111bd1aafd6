"""AlterConfigs: all settings of a resource are replaced."""

from quire.node.authorizer import AclOperation
from quire.node.config_resources import ConfigResource
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode


def alter(node: SimulatedNode, topic: str, **settings: str) -> AlterConfigsResourceResponse:
    configs = [AlterableConfig(name=name.replace("_", "."), value=value) for name, value in settings.items()]
    resource = AlterConfigsResource(resource_type=ConfigResource.TOPIC, resource_name=topic, configs=configs)
    (answer,) = node.call(AlterConfigsRequest(resources=[resource]), 2, AlterConfigsResponse).responses
    return answer


def test_settings_that_are_not_in_the_request_get_their_defaults(node: SimulatedNode) -> None:
    node.create_topic("t", retention_ms="1000", segment_ms="2000")
    assert alter(node, "t", segment_ms="3000").error_code == ErrorCode.NONE
    assert node.node.image.topic_configs("t") == {"segment.ms": "3000"}


def test_settings_of_an_unknown_topic_are_refused(node: SimulatedNode) -> None:
    answer = alter(node, "unknown", segment_ms="3000")
    assert (answer.error_code, answer.resource_name) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "unknown")


def test_altering_settings_needs_alter_configs(node: SimulatedNode) -> None:
    node.create_topic("t", retention_ms="1000")
    deny(node, (AclOperation.ALTER_CONFIGS, "t"))
    answer = alter(node, "t", segment_ms="3000")
    assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert answer.error_message == "altering the settings of topic t is not allowed"
    assert node.node.image.topic_configs("t") == {"retention.ms": "1000"}
