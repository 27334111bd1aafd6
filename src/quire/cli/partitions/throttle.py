"""Limits how fast replicas are copied, with Kafka's settings, and removes the limits again."""

from collections.abc import Collection, Iterable, Sequence

from quire.client.admin.configs import (
    AlterConfigOp,
    ConfigChange,
    ConfigSource,
    Resource,
    ResourceType,
    alter_configs,
    describe_configs,
)
from quire.client.placement.model import Change
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import Failure
from quire.protocol.errors import ApiError

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


def set_throttle(client: BlockingClient, changes: Sequence[Change], brokers: Iterable[int], bytes_per_s: int) -> None:
    """Before anything moves: the brokers' rates, then which replicas are throttled at either end."""
    copied = [each for each in changes if each.adding]
    for broker in brokers:
        rates = [ConfigChange(name, AlterConfigOp.SET, str(bytes_per_s)) for name in RATES]
        try:
            client.run(alter_configs(client.cluster, Resource(ResourceType.BROKER, str(broker)), rates))
        except ApiError as error:
            raise Failure(
                f"broker {broker} refuses the throttle ({str(error).rstrip('.')}); nothing was moved."
            ) from error
    for topic in sorted({each.before.topic for each in copied}):
        ends = {name: list[str]() for name in REPLICAS}
        for each in copied:
            if each.before.topic == topic:
                index = each.before.partition
                ends[REPLICAS[0]] += [f"{index}:{broker}" for broker in each.before.replicas]
                ends[REPLICAS[1]] += [f"{index}:{broker}" for broker in each.adding]
        settings = [ConfigChange(name, AlterConfigOp.SET, ",".join(entries)) for name, entries in ends.items()]
        client.run(alter_configs(client.cluster, Resource(ResourceType.TOPIC, topic), settings))


def clear_throttle(client: BlockingClient, topics: Collection[str], brokers: Collection[int]) -> None:
    """Removes what is set there. A topic may have been deleted meanwhile, and a broker may be down."""
    for topic in sorted(topics):
        _clear(client, Resource(ResourceType.TOPIC, topic), REPLICAS, ConfigSource.TOPIC)
    for broker in sorted(brokers):
        _clear(client, Resource(ResourceType.BROKER, str(broker)), RATES, ConfigSource.BROKER)


def _clear(client: BlockingClient, resource: Resource, names: Sequence[str], source: ConfigSource) -> None:
    try:
        entries = client.run(describe_configs(client.cluster, resource, names))
        removed = [ConfigChange(each.name, AlterConfigOp.DELETE) for each in entries if each.source == source]
        if removed:
            client.run(alter_configs(client.cluster, resource, removed))
    except ApiError:
        pass
