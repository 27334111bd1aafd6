"""Reads a topic as a member of a group, and handles every record at least once.

    python examples/at_least_once_consumer.py orders --group billing

A record is committed only after it has been handled. If the program crashes in between, or loses a partition to another
member, a few records are handled again: handling a record twice must do no harm. Start it twice, and both share the
topic's partitions.
"""

import argparse
import signal
import sys
import threading

from confluent_kafka import Consumer, KafkaError, KafkaException, Message


def handle(message: Message) -> None:
    """Your work. If it raises, the process ends, and the record is delivered again after a restart."""
    print(f"{message.topic()}-{message.partition()} {message.offset()}: {message.value().decode()}", flush=True)


def consume(bootstrap_servers: str, topic: str, group: str, stop: threading.Event) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            # Stored offsets are committed every few seconds, before a partition is revoked, and in close().
            # By default a record is stored when poll() returns it: too early, it has not been handled yet.
            "enable.auto.offset.store": False,
            # If the only broker restarts, librdkafka 2.16 can get stuck looking for another one.
            "metadata.recovery.strategy": "none",
        }
    )
    consumer.subscribe([topic])
    try:
        while not stop.is_set():
            message = consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                end_if_fatal(error)
                continue
            handle(message)
            consumer.store_offsets(message)
    finally:
        consumer.close()


def end_if_fatal(error: KafkaError) -> None:
    """Most errors are only information: a broker restarts, or a topic is missing. The client retries."""
    if error.fatal():
        raise KafkaException(error)
    print(f"continuing after: {error.str()}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="read a topic as a member of a group, each record at least once")
    parser.add_argument("topic")
    parser.add_argument("--group", required=True)
    parser.add_argument("-b", "--bootstrap-servers", default="127.0.0.1:9092")
    arguments = parser.parse_args()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        consume(arguments.bootstrap_servers, arguments.topic, arguments.group, stop)
    except KafkaException as failure:
        raise SystemExit(f"cannot continue: {failure.args[0].str()}") from failure


if __name__ == "__main__":
    main()
