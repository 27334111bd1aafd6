"""An inventory on a real node: sending commands, running processors, and the expected result.

The results of a log of commands do not depend on chance or time, so the expectation is exact: the events and refusals
that `Stock` computes from the same commands, each once, and in order for each item.
"""

import itertools
import subprocess
import uuid
from collections.abc import Iterable
from random import Random

from quire.client.admin.topics import NewTopic, create_topics
from quire.client.offsets import TopicPartition
from quire.client.producer import Producer
from quire.client.shell_blocking import BlockingClient
from quire.protocol.records import Record
from quire_samples.inventory.events import Refusal, Source, StockEvent, decode_event, encode_refusal
from quire_samples.inventory.generator import Mixture, Sent, generate
from quire_samples.inventory.processor import Processor, ProcessorConfig
from quire_samples.inventory.reading import read, whole
from quire_samples.inventory.stock import Stock
from quire_samples.inventory.topics import Topics, partitions_of
from tests.cli.command import PATIENCE_S, environment
from tests.samples.command import SAMPLES


def own_config(**settings: int) -> ProcessorConfig:
    """An inventory that no other test uses."""
    name = f"inventory-{uuid.uuid4().hex[:8]}"
    topics = Topics(f"{name}-commands", f"{name}-events", f"{name}-refusals")
    return ProcessorConfig(topics=topics, name=name, **settings)


def made_commands(count: int, items: int = 20, seed: int = 1) -> list[Sent]:
    return list(itertools.islice(generate(Random(seed), f"c{seed}", Mixture(items=items), 0, 10), count))


def send(client: BlockingClient, topics: Topics, commands: Iterable[Sent]) -> None:
    client.run(client.cluster.refresh([topics.commands]))
    if topics.commands not in client.cluster.metadata.topics:
        client.run(create_topics(client.cluster, [NewTopic(topics.commands, 1)]))
    producer = Producer(client.cluster)
    client.run(producer.prepare(topics.commands))
    for key, value in commands:
        producer.send(topics.commands, value, key=key)
    client.loop.run_until(producer.flush())
    assert producer.first_error is None
    producer.close()


def records(client: BlockingClient, topic: str) -> list[tuple[TopicPartition, Record]]:
    """All committed records, each partition in order."""
    found: list[tuple[TopicPartition, Record]] = []
    partitions = client.run(partitions_of(client.cluster, topic))
    client.run(read(client.cluster, client.run(whole(client.cluster, partitions)), lambda *each: found.append(each)))
    return found


def events_in(client: BlockingClient, topics: Topics) -> list[StockEvent]:
    return [decode_event(record.value) for _, record in records(client, topics.events)]


def expected(client: BlockingClient, topics: Topics) -> tuple[Stock, list[StockEvent], list[Refusal]]:
    """The expected events and refusals of the commands on the topic."""
    stock = Stock()
    events: list[StockEvent] = []
    refusals: list[Refusal] = []
    for topic_partition, record in records(client, topics.commands):
        outcome = stock.decide(record.value, Source(topic_partition.partition, record.offset))
        if isinstance(outcome, Refusal):
            refusals.append(outcome)
        else:
            events += outcome
    return stock, events, refusals


def assert_every_command_was_carried_out_once(client: BlockingClient, topics: Topics) -> None:
    _, events, refusals = expected(client, topics)
    assert by_item(events_in(client, topics)) == by_item(events)
    written = [record.value for _, record in records(client, topics.refusals)]
    assert sorted(filter(None, written)) == sorted(encode_refusal(refusal) for refusal in refusals)


def by_item(events: Iterable[StockEvent]) -> dict[str, list[StockEvent]]:
    """In the order of the log, which is defined only within an item."""
    items: dict[str, list[StockEvent]] = {}
    for event in events:
        items.setdefault(event.item, []).append(event)
    return items


def carry_out(client: BlockingClient, config: ProcessorConfig, commands: int) -> Processor:
    """Runs a processor in this process until it has committed this many commands."""
    processor = Processor(
        client.cluster, config, lambda tally: processor.stop() if tally.commands >= commands else None
    )
    client.run(processor.take_over())
    client.run(processor.work(), timeout_ms=PATIENCE_S * 1000)
    processor.close()
    return processor


class ProcessorProcess:
    """`quire-samples inventory process`, as a service would run it."""

    def __init__(self, servers: str, config: ProcessorConfig) -> None:
        topics = config.topics
        names = ["--commands", topics.commands, "--events", topics.events, "--refusals", topics.refusals]
        command = [*SAMPLES, "inventory", "process", "--name", config.name, *names, "-b", servers]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def wait_until_ready(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def kill(self) -> None:
        """Kills it with SIGKILL: it prints nothing, and finishes nothing."""
        self._process.kill()
        self._process.communicate()

    def stop(self) -> tuple[int, str, str]:
        """The exit code and the output after SIGTERM."""
        self._process.terminate()
        return self.end()

    def end(self) -> tuple[int, str, str]:
        """The same for a processor that ends by itself."""
        out, err = self._process.communicate(timeout=PATIENCE_S)
        return self._process.returncode, out, err
