"""Reads one topic, transforms every record and writes it to another topic, exactly once.

    python examples/exactly_once_copy.py orders orders-in-capitals --name copier-1

The results of a batch and its offsets are written in one transaction: after any crash the log has both or neither.
Read the result with `isolation.level=read_committed`. You can start more copiers, each with its own name. Restart a
copier that crashed with the same name: this aborts its open transaction and takes over its partitions.
"""

import argparse
import signal
import sys
import threading
from collections.abc import Callable

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

BATCH = 500


def transform(value: bytes) -> bytes:
    """Your work."""
    return value.upper()


class Copier:
    def __init__(self, bootstrap_servers: str, source: str, sink: str, name: str) -> None:
        self._sink = sink
        # If the only broker restarts, librdkafka 2.16 can get stuck looking for another one.
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
            until_done(lambda: self._producer.init_transactions(0.5), stop)  # ends the work of a crashed predecessor
            self._consumer.subscribe([self._source])
            print(f"copying {self._source} to {self._sink}, until Ctrl-C", flush=True)
            while not stop.is_set():
                # Partitions are revoked only in here, where no transaction is open.
                batch = self._consumer.consume(BATCH, timeout=0.2)
                records = [message for message in batch if is_record(message)]
                if records:
                    self._copy(records, stop)
        finally:
            self._consumer.close()

    def _copy(self, records: list[Message], stop: threading.Event) -> None:
        try:
            self._producer.begin_transaction()
            for message in records:
                self._producer.produce(self._sink, transform(message.value()), message.key())
            group = self._consumer.consumer_group_metadata()
            until_done(lambda: self._producer.send_offsets_to_transaction(next_offsets(records), group, 5), stop)
            until_done(lambda: self._producer.commit_transaction(5), stop)
        except KafkaException as failure:
            if not failure.args[0].txn_requires_abort():
                raise  # another copier has this name, or the error is fatal: restart the program
            until_done(lambda: self._producer.abort_transaction(5), stop)
            self._read_again(stop)

    def _read_again(self, stop: threading.Event) -> None:
        """Returns to the committed offsets: the aborted batch must be copied again."""
        while not stop.is_set():
            try:
                for partition in self._consumer.committed(self._consumer.assignment(), timeout=5):
                    partition.offset = partition.offset if partition.offset >= 0 else OFFSET_BEGINNING
                    self._consumer.seek(partition)
                return
            except KafkaException as failure:
                end_if_fatal(failure.args[0])


def until_done(call: Callable[[], None], stop: threading.Event) -> None:
    """Repeats a call while its error is retriable, such as a timeout: the next call continues to wait."""
    while True:
        try:
            call()
            return
        except KafkaException as failure:
            if not failure.args[0].retriable():
                raise
            if stop.is_set():
                return  # an open transaction is aborted by the next start, or at its timeout


def is_record(message: Message) -> bool:
    error = message.error()
    if error is not None:
        end_if_fatal(error)
    return error is None


def end_if_fatal(error: KafkaError) -> None:
    """Most errors are only information: a broker restarts, or a topic is missing. The client retries."""
    if error.fatal():
        raise KafkaException(error)
    print(f"continuing after: {error.str()}", file=sys.stderr, flush=True)


def next_offsets(batch: list[Message]) -> list[TopicPartition]:
    """Where to continue in each partition after this batch."""
    offsets = {(message.topic(), message.partition()): message.offset() + 1 for message in batch}
    return [TopicPartition(*topic_partition, offset) for topic_partition, offset in offsets.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description="copy a topic to another in capital letters, each record exactly once")
    parser.add_argument("source")
    parser.add_argument("sink")
    parser.add_argument(
        "--name", required=True, help="of this copier: different for each one that runs, the same after a crash"
    )
    parser.add_argument("-b", "--bootstrap-servers", default="127.0.0.1:9092")
    arguments = parser.parse_args()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        Copier(arguments.bootstrap_servers, arguments.source, arguments.sink, arguments.name).run(stop)
    except KafkaException as failure:
        raise SystemExit(f"cannot continue: {failure.args[0].str()}") from failure


if __name__ == "__main__":
    main()
