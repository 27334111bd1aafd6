"""What the commands that move replicas share: they look at the cluster, and turn a refusal into one sentence."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from quire.cli.missing_topics import topic_failures
from quire.client.admin.placements import ClusterPlacement, describe_placements
from quire.client.offsets import TopicPartition
from quire.client.placement.model import Change, Placement, PlacementError
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import EXIT_NOT_FOUND, Failure
from quire.protocol.errors import ApiError, ErrorCode


@contextmanager
def explaining_plans() -> Iterator[None]:
    """Nothing has moved when a plan is refused."""
    try:
        yield
    except PlacementError as error:
        raise Failure(f"{error}.") from error


def look(client: BlockingClient) -> ClusterPlacement:
    return client.run(describe_placements(client.cluster))


def of_topics(client: BlockingClient, found: ClusterPlacement, topics: Sequence[str]) -> list[Placement]:
    """The partitions of these topics, or all."""
    known = {each.topic for each in found.partitions}
    for name in topics:
        if name not in known:
            missing = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist")
            raise topic_failures(client, {name: missing}, creating_helps=False)[0]
    return [each for each in found.partitions if not topics or each.topic in topics]


def check_brokers(found: ClusterPlacement, brokers: Collection[int]) -> None:
    """They exist: they are registered, or partitions have them as replicas."""
    known = {each.broker_id for each in found.nodes} | set(found.fenced)
    known |= {broker for each in found.partitions for broker in each.replicas}
    unknown = sorted(set(brokers) - known)
    if unknown:
        raise Failure(
            f"there is no broker {unknown[0]}; the brokers are {', '.join(map(str, sorted(known)))}.", EXIT_NOT_FOUND
        )


def check_leaders(found: ClusterPlacement, changes: Sequence[Change]) -> None:
    """What has no leader cannot be copied."""
    for each in changes:
        if each.adding and TopicPartition(each.before.topic, each.before.partition) in found.leaderless:
            raise Failure(
                f"{each.before.name} has no leader, so its records cannot be copied; "
                f"`quire explain {each.before.topic}` says which brokers it waits for."
            )


def check_idle(moving: Collection[TopicPartition]) -> None:
    """A plan for partitions that are moving would be made of what they leave."""
    if moving:
        raise Failure(
            f"{len(moving):,} partitions are being reassigned already: wait with `quire partitions reassign --watch`, "
            "or end that with `quire partitions reassign --cancel`."
            if len(moving) > 1
            else f"{next(iter(moving))} is being reassigned already: wait with `quire partitions reassign --watch`, "
            "or end that with `quire partitions reassign --cancel`."
        )
