"""The client on asyncio, against a real node."""

import asyncio
from collections.abc import Iterator

import pytest

from quire.client.admin.topics import NewTopic, create_topics
from quire.client.consumer import BEGINNING, Consumer, ConsumerConfig
from quire.client.errors import UnreachableError
from quire.client.group_offsets import OffsetAndMetadata, commit_offsets, fetch_offsets
from quire.client.offsets import TopicPartition
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_asyncio import AsyncClient
from quire.protocol.errors import ApiError, ErrorCode
from quire.steps import Steps, sleep
from quire.testing import Cluster

RECORDS = 5000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


async def read(client: AsyncClient, topic: str, count: int, *, read_committed: bool = False) -> list[int]:
    consumer = Consumer(client.cluster, ConsumerConfig(read_committed=read_committed))
    await client.run(consumer.assign({TopicPartition(topic, 0): BEGINNING}))
    found: list[int] = []
    while len(found) < count:
        await asyncio.wait_for(client.wait(consumer.arrival()), 30)
        found += [int(record.value or b"-1") for fetched in consumer.poll() for record in fetched.records()]
    consumer.close()
    return found


def test_writers_and_readers_share_a_loop(cluster: Cluster) -> None:
    async def main() -> list[int]:
        async with AsyncClient(cluster.bootstrap_servers) as client:
            await client.run(create_topics(client.cluster, [NewTopic("shared", 1, 1)]))
            reading = asyncio.create_task(read(client, "shared", RECORDS))
            producer = Producer(client.cluster, ProducerConfig(batch_bytes=2000, linger_ms=0))
            await client.run(producer.prepare("shared"))
            for number in range(RECORDS):
                producer.send("shared", b"%d" % number)
                if number % 500 == 0:
                    await asyncio.sleep(0)
            await client.wait(producer.flush())
            return await reading

    assert asyncio.run(main()) == list(range(RECORDS))


def test_transactions_and_offsets(cluster: Cluster) -> None:
    topic_partition = TopicPartition("transactions", 0)

    async def main() -> tuple[list[int], dict[TopicPartition, OffsetAndMetadata]]:
        async with AsyncClient(cluster.bootstrap_servers) as client:
            await client.run(create_topics(client.cluster, [NewTopic("transactions", 1, 1)]))
            producer = Producer(client.cluster, ProducerConfig(transactional_id="asyncio"))
            await client.run(producer.init_transactions())
            await client.run(producer.prepare("transactions"))
            for number in range(4):
                producer.begin()
                producer.send("transactions", b"%d" % number)
                await client.run(producer.send_offsets("asyncio", {topic_partition: OffsetAndMetadata(number, "x")}))
                await client.run(producer.commit() if number % 2 else producer.abort())
            found = await read(client, "transactions", 2, read_committed=True)
            return found, await client.run(fetch_offsets(client.cluster, "asyncio"))

    assert asyncio.run(main()) == ([1, 3], {topic_partition: OffsetAndMetadata(3, "x")})


def test_the_error_that_ends_an_operation_is_raised_where_it_is_awaited(cluster: Cluster) -> None:
    async def main() -> None:
        async with AsyncClient(cluster.bootstrap_servers) as client:
            await client.run(commit_offsets(client.cluster, "g", {TopicPartition("none", 0): OffsetAndMetadata(1)}))

    with pytest.raises(ApiError) as caught:
        asyncio.run(main())
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_unresolvable_names_and_silent_ports_are_reported() -> None:
    async def main(servers: str) -> None:
        async with AsyncClient(servers) as client:
            await client.run(client.cluster.refresh(None))

    with pytest.raises(UnreachableError, match="does not resolve"):
        asyncio.run(main("no-such-host.invalid:9092"))
    with pytest.raises(UnreachableError, match="refused"):
        asyncio.run(main("127.0.0.1:1"))


def test_an_operation_whose_waiter_is_cancelled_stops_where_it_is(cluster: Cluster) -> None:
    steps_taken: list[str] = []

    async def main() -> None:
        async with AsyncClient(cluster.bootstrap_servers) as client:

            def endless() -> Steps[None]:
                try:
                    while True:
                        yield from sleep(client.cluster.clock, 1)
                finally:
                    steps_taken.append("ended")

            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.run(endless()), 0.05)
            assert steps_taken == ["ended"]
            await client.run(sleep(client.cluster.clock, 20))  # the result that the last step waited for never comes

    asyncio.run(main(), debug=True)


def test_a_restarted_node_is_found_again() -> None:
    async def main(cluster: Cluster) -> list[int]:
        async with AsyncClient(cluster.bootstrap_servers) as client:
            await client.run(create_topics(client.cluster, [NewTopic("back", 1, 1)]))
            producer = Producer(client.cluster)
            await client.run(producer.prepare("back"))
            producer.send("back", b"0")
            await client.wait(producer.flush())
            cluster.kill()
            producer.send("back", b"1")
            await asyncio.to_thread(cluster.restart)
            await asyncio.wait_for(client.wait(producer.flush()), 30)
            return await read(client, "back", 2)

    with Cluster() as cluster:
        assert asyncio.run(main(cluster)) == [0, 1]
