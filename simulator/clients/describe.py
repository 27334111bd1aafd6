"""Describes topics and settings, and compares them with what was acknowledged."""

from quire.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from quire.protocol.messages.metadata import MetadataRequest
from simulator.checks.metadata_checker import MetadataChecker
from simulator.clients.client import SimClient
from simulator.clients.produce import GONE
from simulator.ledger import TopicBook

TOPIC_RESOURCE = 2
FIRST_VERSION_WITH_NULL_FOR_ALL = 1


async def describe_topics(client: SimClient) -> None:
    checker = MetadataChecker(client.scene.ledger)
    await client.connected()
    floor = checker.floor()
    request = MetadataRequest(topics=None, allow_auto_topic_creation=True)
    answer = await client.ask(request, at_least=FIRST_VERSION_WITH_NULL_FOR_ALL)
    if client.knows_everything:
        checker.described(floor, answer)


async def describe_settings(client: SimClient, topic: TopicBook) -> None:
    """For a topic whose deletion had not been requested when this was sent."""
    await client.connected()
    before = _possible(topic)
    resource = DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic.name, configuration_keys=None)
    answer = await client.ask(DescribeConfigsRequest(resources=[resource]))
    result = answer.results[0]
    error = client.expect(result.error_code, f"DescribeConfigs of {topic}", *(GONE if topic.deletion_asked else ()))
    if error or topic.deletion_asked or not client.knows_everything:
        return
    after = _possible(topic)
    allowed = {key: before.get(key, []) + values for key, values in after.items()}
    found = {each.name: each.value for each in result.configs}
    MetadataChecker(client.scene.ledger).settings(topic, allowed, found)


def _possible(topic: TopicBook) -> dict[str, list[str]]:
    return {key: [setting.acknowledged, *setting.doubtful] for key, setting in topic.settings.items()}
