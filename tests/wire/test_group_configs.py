"""Settings of single consumer groups, changed and described by requests, and their effect on members."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages import incremental_alter_configs as incremental
from quire.protocol.messages import list_config_resources as resources
from quire.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from quire.testing import WireConnection
from tests.wire.clients import eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.raw_consumer_groups import RawConsumer, beat

GROUP = 32
OF_GROUP = 8
SET, DELETE, APPEND = 0, 1, 2
INTERVAL = "consumer.heartbeat.interval.ms"
SESSION = "consumer.session.timeout.ms"


def alter(
    connection: WireConnection, group: str, *changes: tuple[str, str | None], operation: int = SET
) -> incremental.AlterConfigsResourceResponse:
    settings = [
        incremental.AlterableConfig(name=name, value=value, config_operation=operation) for name, value in changes
    ]
    resource = incremental.AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=settings)
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource])
    (answer,) = connection.call(request, 1, incremental.IncrementalAlterConfigsResponse).responses
    return answer


def describe(connection: WireConnection, group: str) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=GROUP, resource_name=group)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (answer,) = connection.call(request, 4, DescribeConfigsResponse).results
    return answer


def value_of(connection: WireConnection, group: str, name: str) -> tuple[str | None, int]:
    (found,) = [each for each in describe(connection, group).configs if each.name == name]
    return found.value, found.config_source


def test_a_group_has_the_brokers_settings_until_it_has_its_own(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    before = value_of(connection, group, INTERVAL)
    assert alter(connection, group, (INTERVAL, "456"), (SESSION, "3210")).error_code == ErrorCode.NONE
    eventually(lambda: value_of(connection, group, INTERVAL) == ("456", OF_GROUP))
    listed = connection.call(
        resources.ListConfigResourcesRequest(resource_types=[GROUP]), 1, resources.ListConfigResourcesResponse
    )
    assert group in [each.resource_name for each in listed.config_resources]
    member = RawConsumer(connection, group, topic)
    member.join()
    assert beat(connection, group, member.member_id, member.epoch).heartbeat_interval_ms == 456
    assert alter(connection, group, (INTERVAL, None), (SESSION, None), operation=DELETE).error_code == ErrorCode.NONE
    eventually(lambda: value_of(connection, group, INTERVAL) == before)


@pytest.mark.parametrize(
    ("name", "value", "operation"),
    [
        (SESSION, "1", SET),
        (SESSION, "100000000", SET),
        (SESSION, "100", SET),
        (SESSION, "soon", SET),
        (SESSION, "5", APPEND),
        (INTERVAL, "100000", SET),
        ("consumer.nothing", "1", SET),
    ],
)
def test_settings_that_a_group_cannot_have_are_refused(
    connection: WireConnection, new_group: NewName, name: str, value: str, operation: int
) -> None:
    group = new_group()
    answer = alter(connection, group, (name, value), operation=operation)
    assert answer.error_code == ErrorCode.INVALID_CONFIG and name in (answer.error_message or "")


def test_a_group_has_to_have_a_name(connection: WireConnection) -> None:
    assert alter(connection, "", (SESSION, "5000")).error_code == ErrorCode.INVALID_REQUEST
    assert describe(connection, "").error_code == ErrorCode.INVALID_REQUEST
