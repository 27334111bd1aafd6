"""IncrementalAlterConfigs: single settings change, the others stay."""

import pytest

from quire.node.authorizer import AclOperation
from quire.node.config_resources import ConfigResource
from quire.protocol.alter_config_op import AlterConfigOp
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode


def alter(
    node: SimulatedNode, name: str, operation: AlterConfigOp, value: str | None, *, kind: int = ConfigResource.TOPIC
) -> AlterConfigsResourceResponse:
    config = AlterableConfig(name=name, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name="t", configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (answer,) = node.call(request, 1, IncrementalAlterConfigsResponse).responses
    return answer


@pytest.mark.parametrize(
    ("name", "operation", "value", "expected"),
    [
        ("segment.ms", AlterConfigOp.SET, "3000", {"segment.ms": "3000", "cleanup.policy": "delete"}),
        ("cleanup.policy", AlterConfigOp.DELETE, None, {}),
        ("cleanup.policy", AlterConfigOp.APPEND, "compact", {"cleanup.policy": "delete,compact"}),
    ],
)
def test_a_setting_is_changed_and_the_others_stay(
    node: SimulatedNode, name: str, operation: AlterConfigOp, value: str | None, expected: dict[str, str]
) -> None:
    node.create_topic("t", cleanup_policy="delete")
    assert alter(node, name, operation, value).error_code == ErrorCode.NONE
    assert node.node.image.topic_configs("t") == expected


def test_an_impossible_value_is_refused_and_changes_nothing(node: SimulatedNode) -> None:
    node.create_topic("t")
    assert alter(node, "segment.ms", AlterConfigOp.SET, "long").error_code == ErrorCode.INVALID_CONFIG
    assert node.node.image.topic_configs("t") == {}


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ConfigResource.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (ConfigResource.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ],
)
def test_settings_that_may_not_be_altered_are_refused(node: SimulatedNode, kind: int, code: ErrorCode) -> None:
    node.create_topic("t")
    deny(node, (AclOperation.ALTER_CONFIGS, "t"))
    answer = alter(node, "segment.ms", AlterConfigOp.SET, "3000", kind=kind)
    assert (answer.error_code, answer.resource_type, answer.resource_name) == (code, kind, "t")
    assert node.node.image.topic_configs("t") == {}
