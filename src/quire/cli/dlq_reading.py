"""Reads dead-letter topics to their end, committed records only, for `quire dlq`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from quire.client.admin.configs import Resource, ResourceType, describe_configs
from quire.client.admin.topics import describe_topics
from quire.client.consumer import Consumer, ConsumerConfig, Start
from quire.client.group_offsets import fetch_offsets
from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError
from quire.protocol.records import Record
from quire.spark.dead_letters import SUFFIX, DeadLetter, NotADeadLetterError, read_headers

REPLAY_GROUP = "quire-dlq-replay"
READ_COMMITTED = 1


class Letter(NamedTuple):
    """A record of a dead-letter topic; `why` is a text where its headers do not say what they should."""

    place: TopicPartition
    record: Record
    why: DeadLetter | str


def dead_letter_topics(client: BlockingClient, wanted: Iterable[str] = ()) -> list[str]:
    """The topics named, or all that are for dead letters. ORDERS and ORDERS.dlq name the same."""
    names = [name if name.endswith(SUFFIX) else name + SUFFIX for name in wanted]
    found = client.run(describe_topics(client.cluster, names or None))
    for name in names:
        if isinstance(missing := found[name], ApiError):
            raise missing
    return names or [name for name in found if name.endswith(SUFFIX)]


def places_of(client: BlockingClient, topics: Iterable[str]) -> list[TopicPartition]:
    found = client.run(describe_topics(client.cluster, topics))
    places = []
    for name, topic in found.items():
        if isinstance(topic, ApiError):
            raise topic
        places += [TopicPartition(name, partition) for partition in topic.partitions]
    return places


def replayed_up_to(client: BlockingClient, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    """How far replaying has come."""
    committed = client.run(fetch_offsets(client.cluster, REPLAY_GROUP, places))
    return {place: at.offset for place, at in committed.items()}


def replays_are_forgotten_after_ms(client: BlockingClient) -> int:
    """How long the cluster keeps what was committed for a group without members."""
    broker = Resource(ResourceType.BROKER, str(next(iter(client.cluster.metadata.brokers))))
    (setting,) = client.run(describe_configs(client.cluster, broker, ["offsets.retention.minutes"]))
    return int(setting.value or 0) * 60_000


def some_are_older(client: BlockingClient, places: list[TopicPartition], than_ms: int) -> bool:
    """Whether there are dead letters from before a moment."""
    firsts = client.run(list_offsets(client.cluster, dict.fromkeys(places, EARLIEST)))
    ends = client.run(list_offsets(client.cluster, dict.fromkeys(places, LATEST)))
    since = client.run(list_offsets(client.cluster, dict.fromkeys(places, than_ms)))
    # Where nothing is as late as that, all there is is older.
    newer = {place: ends[place].offset if found.offset < 0 else found.offset for place, found in since.items()}
    return any(firsts[place].offset < newer[place] for place in places)


def ends_of(client: BlockingClient, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    """Where what is committed ends now, with the marker of the last transaction."""
    found = client.run(list_offsets(client.cluster, dict.fromkeys(places, LATEST), isolation_level=READ_COMMITTED))
    return {place: end.offset for place, end in found.items()}


def read_letters(
    client: BlockingClient, ends: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int]
) -> Iterator[Letter]:
    """Every dead letter from `starts` on (the beginning, where it says nothing) up to `ends`."""
    places = list(ends)
    firsts = client.run(list_offsets(client.cluster, dict.fromkeys(places, EARLIEST)))
    begin = {place: max(starts.get(place, 0), firsts[place].offset) for place in places}
    behind = {place: Start(offset=at) for place, at in begin.items() if at < ends[place]}
    consumer = Consumer(client.cluster, ConsumerConfig(read_committed=True))
    client.run(consumer.assign(behind))
    while any(offset < ends[place] for place, offset in consumer.positions.items()):
        client.loop.run_until(consumer.arrival())
        for fetched in consumer.poll():
            for record in fetched.records():
                if record.offset < ends[fetched.place]:
                    yield Letter(fetched.place, record, _why(record))
    consumer.close()


def _why(record: Record) -> DeadLetter | str:
    try:
        return read_headers(record.headers)
    except NotADeadLetterError as error:
        return f"this is no dead letter: {error}"
