"""The content of a topic, read by a Kafka client that is not Quire's."""

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition


def messages(servers: str, topic: str, *, committed: bool = True) -> list[Message]:
    """Every message, partition after partition, in the order of offsets; by default only committed ones."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "log reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "fetch.message.max.bytes": 32 * 1024 * 1024,
        }
    )
    try:
        partitions = consumer.list_topics(topic, 10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        found, unread = [], set(partitions)
        while unread:
            message = consumer.poll(30)
            assert message is not None, f"{topic} has not been read to its end"
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.discard(message.partition())
            else:
                raise KafkaException(error)
        return sorted(found, key=lambda message: (message.partition(), message.offset()))
    finally:
        consumer.close()


def values(servers: str, topic: str, *, committed: bool = True) -> list[str]:
    """The values as texts, sorted."""
    return sorted(message.value().decode() for message in messages(servers, topic, committed=committed))
