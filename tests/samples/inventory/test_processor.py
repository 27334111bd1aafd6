"""The processor on a real node: every command once, from where the previous processor stopped, and one processor at a
time.
"""

from collections.abc import Iterator

import pytest

from quire.client.admin.topics import NewTopic, create_partitions, create_topics, delete_records, delete_topics
from quire.client.errors import ClientError
from quire.client.group_offsets import OffsetAndMetadata, commit_offsets, delete_offsets, fetch_offsets
from quire.client.offsets import TopicPartition
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError, ErrorCode
from quire.steps import Steps
from quire.testing import Cluster
from quire_samples.inventory.commands import Command, Kind, Line, encode_command
from quire_samples.inventory.events import encode_event
from quire_samples.inventory.generator import Sent
from quire_samples.inventory.processor import Processor, ProcessorConfig, TakenOverError, Tally
from quire_samples.inventory.stock import Level
from quire_samples.inventory.topics import Topics, ensure_topics
from quire_samples.inventory.view import Follower, View
from tests.samples.inventory.histories import history
from tests.samples.inventory.running import (
    ProcessorProcess,
    assert_every_command_was_carried_out_once,
    carry_out,
    events_in,
    expected,
    made_commands,
    own_config,
    records,
    send,
)
from tests.wire.clients import eventually


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Cluster(config={"log.cleaner.backoff.ms": 50}) as cluster:
        yield cluster.bootstrap_servers


@pytest.fixture
def client(servers: str) -> Iterator[BlockingClient]:
    with BlockingClient(servers) as opened:
        yield opened


def shipment(name: str, *lines: tuple[str, int]) -> Sent:
    command = Command(name, Kind.SHIPMENT, tuple(Line(*line) for line in lines))
    return Sent(name.encode(), encode_command(command))


def done_to(client: BlockingClient, config: ProcessorConfig) -> int:
    partition = TopicPartition(config.topics.commands, 0)
    committed = client.run(fetch_offsets(client.cluster, config.name, [partition], require_stable=False))
    return committed[partition].offset if partition in committed else 0


def test_commands_lead_to_events_and_refusals_and_are_done(client: BlockingClient) -> None:
    config = own_config()
    send(client, config.topics, made_commands(1_000))
    processor = carry_out(client, config, 1_000)
    assert_every_command_was_carried_out_once(client, config.topics)
    assert processor.stock.levels == expected(client, config.topics)[0].levels
    assert done_to(client, config) == 1_000
    tally = processor.tally
    assert (tally.commands, tally.events) == (1_000, len(events_in(client, config.topics)))
    assert tally.refusals.total() == len(records(client, config.topics.refusals)) > 0


def test_events_are_keyed_by_item_and_refusals_by_command(client: BlockingClient) -> None:
    config = own_config()
    send(client, config.topics, [shipment("s", ("pen", 1)), shipment("s", ("pen", 1)), Sent(b"?", b"nonsense")])
    carry_out(client, config, 3)
    assert [record.key for _, record in records(client, config.topics.events)] == [b"pen"]
    assert sorted(record.key or b"" for _, record in records(client, config.topics.refusals)) == [b"0@2", b"s"]


def test_the_next_one_knows_the_stock_and_the_commands_of_the_one_before(client: BlockingClient) -> None:
    config = own_config(commands_at_once=7)
    commands = made_commands(300)
    for part in range(3):
        send(client, config.topics, commands[100 * part : 100 * part + 100])
        processor = carry_out(client, config, 100)
        assert processor.tally.transactions == 15
    assert_every_command_was_carried_out_once(client, config.topics)


def test_commands_of_an_aborted_transaction_are_not_carried_out(client: BlockingClient) -> None:
    config = own_config()
    client.run(ensure_topics(client.cluster, config.topics))
    producer = Producer(client.cluster, ProducerConfig(transactional_id=f"{config.name}-sender"))
    client.run(producer.init_transactions())
    client.run(producer.prepare(config.topics.commands))
    for name, ending in (("a", producer.commit), ("b", producer.abort), ("c", producer.commit)):
        producer.begin()
        producer.send(config.topics.commands, shipment(name, ("pen", 1)).value)
        client.loop.run_until(producer.flush())
        client.run(ending())
    carry_out(client, config, 2)
    assert [event.command for event in events_in(client, config.topics)] == ["a", "c"]
    carry_out_nothing(client, config)


def carry_out_nothing(client: BlockingClient, config: ProcessorConfig) -> None:
    """A processor that takes over, finds everything done, and stops."""
    processor = Processor(client.cluster, config)
    client.run(processor.take_over())
    processor.stop()
    client.run(processor.work())
    processor.close()
    assert processor.tally.commands == 0


def test_it_restores_the_stock_from_what_compaction_has_left(client: BlockingClient) -> None:
    config = own_config(archive_lag_ms=1, commands_at_once=20)
    topics = config.topics
    soon = {"cleanup.policy": "compact", "min.compaction.lag.ms": "2", "min.cleanable.dirty.ratio": "0.01"}
    new = NewTopic(topics.events, 1, configs=soon | {"internal.segment.bytes": "20000"})
    client.run(create_topics(client.cluster, [new]))
    send(client, topics, made_commands(500))
    before = carry_out(client, config, 500)
    written = before.tally.events
    eventually(lambda: len(records(client, topics.events)) < written // 2)
    send(client, topics, made_commands(500, seed=2))
    after = carry_out(client, config, 500)
    assert after.stock.levels == expected(client, topics)[0].levels
    assert sum(level.sequence for level in after.stock.levels.values()) == written + after.tally.events


class DiedError(Exception):
    pass


def dying_after(steps: Steps[None], count: int) -> Steps[None]:
    """The same, until it has waited this many times: there it dies, and finishes nothing that it has begun."""
    value: object = None
    for _ in range(count):
        try:
            value = yield steps.send(value)
        except StopIteration:
            break
    raise DiedError


def lifetime(client: BlockingClient, config: ProcessorConfig, commands: int) -> Steps[None]:
    """A processor that ends when this many commands are done in total."""
    begun = 0

    def look(tally: Tally) -> None:
        if begun + tally.commands >= commands:
            processor.stop()

    processor = Processor(client.cluster, config, look)
    yield from processor.take_over()
    (begun,) = processor.positions.values()
    if begun < commands:
        yield from processor.work()


def test_one_that_dies_at_any_step_of_its_way_has_done_every_command_once(servers: str) -> None:
    """It dies at each step where it waits for an answer: the first processor after one step, the next after two, and so
    on."""
    config = own_config(commands_at_once=3)
    commands, lives = 60, 0
    with BlockingClient(servers) as client:
        client.run(ensure_topics(client.cluster, config.topics))
        send(client, config.topics, made_commands(commands))
        while not lives or done_to(client, config) < commands:
            lives += 1
            with BlockingClient(servers) as own, pytest.raises(DiedError):
                own.run(dying_after(lifetime(own, config, commands), lives), timeout_ms=20_000)
        assert lives > 20
        assert_every_command_was_carried_out_once(client, config.topics)


def test_the_older_of_two_stops_with_one_sentence_and_what_it_had_begun_is_undone(client: BlockingClient) -> None:
    config = own_config()
    send(client, config.topics, made_commands(10))
    older = Processor(client.cluster, config)
    client.run(older.take_over())
    carry_out(client, config, 10)
    with pytest.raises(TakenOverError, match=f"another processor has taken over as {config.name}") as raised:
        client.run(older.work())
    assert "\n" not in str(raised.value)
    assert older.tally.commands == 0
    older.close()
    assert_every_command_was_carried_out_once(client, config.topics)


def test_as_processes_the_older_ends_with_one_sentence_on_standard_error(servers: str, client: BlockingClient) -> None:
    config = own_config()
    older = ProcessorProcess(servers, config)
    assert older.wait_until_ready().startswith("ready: ")
    newer = ProcessorProcess(servers, config)
    assert newer.wait_until_ready().startswith("ready: ")
    send(client, config.topics, made_commands(100))
    code, _, said = older.end()
    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith(f"quire-samples: another processor has taken over as {config.name}")
    eventually(lambda: done_to(client, config) == 100)
    code, out, said = newer.stop()
    assert (code, said) == (0, "")
    assert out.startswith("100 commands, ")
    assert_every_command_was_carried_out_once(client, config.topics)


def test_commands_removed_before_their_execution_are_an_error(client: BlockingClient) -> None:
    config = own_config()
    send(client, config.topics, made_commands(20))
    carry_out(client, config, 20)
    send(client, config.topics, made_commands(20, seed=2))
    client.run(delete_records(client.cluster, {TopicPartition(config.topics.commands, 0): 30}))
    with pytest.raises(ApiError, match="done up to offset 20, but the partition has 30 to 40") as raised:
        carry_out(client, config, 1)
    assert raised.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("last", [shipment("s", ("pen", 1)), shipment("refused", ("pen", 1)), Sent(b"?", b"nonsense")])
def test_it_continues_in_the_right_position_when_its_offsets_are_lost(client: BlockingClient, last: Sent) -> None:
    """Like a cluster that expires the offsets of a group which was idle for a week."""
    config = own_config()
    send(client, config.topics, [*made_commands(50), shipment("refused", ("pen", 1)), last])
    carry_out(client, config, 52)
    partition = TopicPartition(config.topics.commands, 0)
    assert client.run(delete_offsets(client.cluster, config.name, [partition])) == {partition: None}
    carry_out_nothing(client, config)
    send(client, config.topics, made_commands(50, seed=2))
    carry_out(client, config, 50)
    assert_every_command_was_carried_out_once(client, config.topics)


def test_it_refuses_to_repeat_commands_after_its_offset_was_set_back(client: BlockingClient) -> None:
    config = own_config()
    send(client, config.topics, [shipment(f"s{number}", ("pen", 1)) for number in range(20)])
    carry_out(client, config, 20)
    partition = TopicPartition(config.topics.commands, 0)
    client.run(commit_offsets(client.cluster, config.name, {partition: OffsetAndMetadata(5)}))
    with pytest.raises(ApiError, match="up to offset 5, but there is an event of the command at 19"):
        carry_out(client, config, 1)
    client.run(commit_offsets(client.cluster, config.name, {partition: OffsetAndMetadata(20)}))
    carry_out_nothing(client, config)


def test_it_does_not_continue_in_the_middle_of_recreated_commands(client: BlockingClient) -> None:
    config = own_config()
    send(client, config.topics, [shipment(f"s{number}", ("pen", 1)) for number in range(20)])
    carry_out(client, config, 20)
    client.run(delete_topics(client.cluster, [config.topics.commands]))
    send(client, config.topics, [shipment(f"t{number}", ("pen", 1)) for number in range(30)])
    with pytest.raises(ApiError, match=r"the events say that command s19 is at offset 19 of .*, but another record is"):
        carry_out(client, config, 1)


def test_it_does_not_begin_with_empty_shelves_because_the_events_were_created_again(client: BlockingClient) -> None:
    config = own_config()
    send(client, config.topics, [shipment("s", ("pen", 7))])
    carry_out(client, config, 1)
    client.run(delete_topics(client.cluster, [config.topics.events]))
    send(client, config.topics, [shipment("t", ("pen", 1))])
    with pytest.raises(ApiError, match="it was created again, and every level would begin at zero"):
        carry_out(client, config, 1)


def test_a_stranger_on_the_event_topic_is_named_by_its_position(client: BlockingClient) -> None:
    config = own_config()
    client.run(ensure_topics(client.cluster, config.topics))
    producer = Producer(client.cluster)
    client.run(producer.prepare(config.topics.events))
    producer.send(config.topics.events, b"hello", key=b"pen", partition=1)
    client.loop.run_until(producer.flush())
    with pytest.raises(ClientError, match=f"{config.topics.events}-1 has a record at offset 0 that no processor wrote"):
        carry_out(client, config, 1)


def test_events_that_two_writers_have_mixed_up_are_not_taken_for_a_stock(client: BlockingClient, servers: str) -> None:
    config = own_config()
    client.run(ensure_topics(client.cluster, config.topics))
    producer = Producer(client.cluster)
    client.run(producer.prepare(config.topics.events))
    for event in reversed(history(("pen", 3), ("pen", 2))):
        producer.send(config.topics.events, encode_event(event), key=b"pen", partition=0)
    client.loop.run_until(producer.flush())
    code, _, said = ProcessorProcess(servers, config).end()
    assert (code, said) == (
        1,
        f"quire-samples: {config.topics.events}-0 is not what one processor wrote: at offset 1 event 1 of pen comes "
        "after event 2, which it should precede.\n",
    )


def test_the_first_one_makes_the_topics(client: BlockingClient) -> None:
    config = own_config()
    carry_out_nothing(client, config)
    send(client, config.topics, [shipment("s", ("pen", 1))])
    assert carry_out(client, config, 1).stock.levels == {"pen": Level(1, 1)}
    assert {len(client.cluster.metadata.topics[name].partitions) for name in names(config.topics)} == {1, 3}


def names(topics: Topics) -> list[str]:
    return [topics.commands, topics.events, topics.refusals]


def test_it_ends_when_the_commands_get_another_partition_and_the_next_one_reads_it(client: BlockingClient) -> None:
    config = own_config()
    processor = Processor(client.cluster, config)
    client.run(processor.take_over())
    client.run(create_partitions(client.cluster, {config.topics.commands: 2}))
    with pytest.raises(ClientError, match=f"topic {config.topics.commands} had 1 partitions and has 2 now"):
        client.run(processor.work(), 10_000)
    processor.close()
    producer = Producer(client.cluster)
    client.run(producer.prepare(config.topics.commands))
    sent = shipment("late", ("pen", 3))
    producer.send(config.topics.commands, sent.value, key=sent.key, partition=1)
    client.loop.run_until(producer.flush())
    assert carry_out(client, config, 1).stock.levels["pen"] == Level(3, 1)


def test_the_view_ends_when_the_events_get_another_partition(client: BlockingClient) -> None:
    config = own_config()
    client.run(ensure_topics(client.cluster, config.topics))
    follower = Follower(client.cluster, View(config.topics.events))
    client.run(follower.rebuild())
    client.run(create_partitions(client.cluster, {config.topics.events: 4}))
    with pytest.raises(ClientError, match=f"topic {config.topics.events} had 3 partitions and has 4 now"):
        client.run(follower.follow(), 10_000)
    follower.stop()
