"""Reads one topic, transforms every record and writes it to another topic, exactly once.

    python examples/exactly_once_copy.py orders orders-in-capitals --name copier-1

What a batch of records becomes, and how far it has been read, are one transaction: after any crash both are there or
neither is. Read the result with `isolation.level=read_committed`. Start more copiers, each with a name of its own; one
that crashed is started again with the same name, which ends what its predecessor left open and takes its partitions.
"""

import argparse
import signal
import threading

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition

BATCH = 500


def transform(value: bytes) -> bytes:
    """Your work."""
    return value.upper()


class Copier:
    def __init__(self, bootstrap_servers: str, source: str, sink: str, name: str) -> None:
        self._sink = sink
        # Where the only broker may go away and come back: librdkafka 2.16 can get stuck looking for another one.
        common = {"bootstrap.servers": bootstrap_servers, "metadata.recovery.strategy": "none"}
        self._producer = Producer(common | {"transactional.id": name})
        self._consumer = Consumer(
            common
            | {
                "group.id": f"copy-{source}-to-{sink}",
                "group.instance.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,  # the producer commits, in its transactions
                "isolation.level": "read_committed",
            }
        )
        self._source = source

    def run(self, stop: threading.Event) -> None:
        try:
            self._take_over(stop)
            self._consumer.subscribe([self._source])
            while not stop.is_set():
                # Partitions are only taken away in here, where no transaction is open.
                batch = self._consumer.consume(BATCH, timeout=0.2)
                if batch:
                    self._copy(batch)
        finally:
            self._consumer.close()

    def _take_over(self, stop: threading.Event) -> None:
        """First of all: aborts what a crashed predecessor left open, and fences it if it still lives."""
        while not stop.is_set():
            try:
                self._producer.init_transactions(0.5)
                return
            except KafkaException as failure:
                if not failure.args[0].retriable():  # being out of time is: the next call goes on waiting
                    raise

    def _copy(self, batch: list[Message]) -> None:
        try:
            self._producer.begin_transaction()
            for message in batch:
                if message.error():
                    raise KafkaException(message.error())
                self._producer.produce(self._sink, transform(message.value()), message.key())
            group = self._consumer.consumer_group_metadata()
            self._producer.send_offsets_to_transaction(next_offsets(batch), group)
            self._producer.commit_transaction()
        except KafkaException as failure:
            if not failure.args[0].txn_requires_abort():
                raise  # somebody else has our name, or nothing works any more: a restart sorts it out
            self._producer.abort_transaction()
            self._read_again()

    def _read_again(self) -> None:
        """Goes back to what is committed: the aborted batch has to be copied once more."""
        for place in self._consumer.committed(self._consumer.assignment()):
            place.offset = place.offset if place.offset >= 0 else OFFSET_BEGINNING
            self._consumer.seek(place)


def next_offsets(batch: list[Message]) -> list[TopicPartition]:
    """Where to go on in each partition after this batch."""
    offsets = {(message.topic(), message.partition()): message.offset() + 1 for message in batch}
    return [TopicPartition(*place, offset) for place, offset in offsets.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description="copy a topic to another in capital letters, each record exactly once")
    parser.add_argument("source")
    parser.add_argument("sink")
    parser.add_argument(
        "--name", required=True, help="of this copier: another for each that runs, the same after a crash"
    )
    parser.add_argument("--bootstrap-servers", default="127.0.0.1:9092")
    arguments = parser.parse_args()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        Copier(arguments.bootstrap_servers, arguments.source, arguments.sink, arguments.name).run(stop)
    except KafkaException as failure:
        raise SystemExit(f"cannot go on: {failure.args[0].str()}") from failure


if __name__ == "__main__":
    main()
