"""Three nodes that are brokers and controllers: how clients and the nodes see each other."""

from functools import partial

import pytest

from quire.client.cluster import Cluster
from quire.client.consumer import BEGINNING, Consumer, ConsumerConfig
from quire.client.group_consumer import GroupConsumer
from quire.client.group_offsets import OffsetAndMetadata, fetch_offsets
from quire.client.offsets import TopicPartition
from quire.client.producer import Producer, ProducerConfig
from quire.node.node import Node
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from quire.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from quire.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from quire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from quire.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from quire.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from quire.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from quire.protocol.records import Record, build_batch
from tests.node.sim_nodes import CONTROLLER_PORT, SimNodes


@pytest.fixture
def nodes() -> SimNodes:
    return SimNodes().start()


def test_a_cluster_starts_and_every_broker_is_known_everywhere(nodes: SimNodes) -> None:
    nodes.until(lambda: all(not each.image.brokers[id_].fenced for each in nodes.nodes.values() for id_ in (1, 2, 3)))
    assert nodes.clock.monotonic_ms() < 2_000


@pytest.mark.parametrize("node_id", [1, 2, 3])
def test_a_topic_is_created_through_any_node_and_seen_there_at_once(nodes: SimNodes, node_id: int) -> None:
    topic = CreatableTopic(name="t", num_partitions=6, replication_factor=1)
    response = nodes.ask(node_id, CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)
    assert response.topics[0].error_code == ErrorCode.NONE
    created = nodes.nodes[node_id].image.topics_by_name["t"]
    assert sorted(each.leader for each in created.partitions.values()) == [1, 1, 2, 2, 3, 3]


def write_30_records(nodes: SimNodes, client: Cluster) -> None:
    producer = Producer(client, ProducerConfig(linger_ms=0))
    nodes.run(producer.prepare("t"))
    for number in range(30):
        producer.send("t", b"%d" % number, partition=number % 3)
    nodes.settle(producer.flush())
    assert (producer.first_error, producer.delivered_records) == (None, 30)


def test_records_are_written_and_read_wherever_their_partition_is(nodes: SimNodes) -> None:
    nodes.create_topic(2, "t", leaders=[1, 2, 3])
    client = nodes.client()
    write_30_records(nodes, client)
    assert read(nodes, client, "t", 30) == [list(range(index, 30, 3)) for index in range(3)]
    for index, node_id in enumerate((1, 2, 3)):
        assert nodes.nodes[node_id].partitions.leader("t", None, index).partition.high_watermark == 10


def read(nodes: SimNodes, client: Cluster, topic: str, count: int, partitions: int = 3) -> list[list[int]]:
    consumer = Consumer(client, ConsumerConfig(read_committed=True))
    nodes.run(consumer.assign({TopicPartition(topic, index): BEGINNING for index in range(partitions)}))
    found: list[list[int]] = [[] for _ in range(partitions)]
    while sum(map(len, found)) < count:
        nodes.settle(consumer.arrival())
        for fetched in consumer.poll():
            found[fetched.topic_partition.partition] += [int(record.value or b"-1") for record in fetched.records()]
    consumer.close()
    return found


def test_a_client_at_the_wrong_broker_gets_the_right_one(nodes: SimNodes) -> None:
    nodes.create_topic(1, "t", leaders=[2])
    batch = bytes(build_batch([Record(0, 0, None, b"v")]))
    topic_id = nodes.nodes[1].image.topics_by_name["t"].topic_id
    data = TopicProduceData(topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=batch)])
    refused = nodes.ask(3, ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[data]), ProduceResponse)
    (answer,) = refused.responses[0].partition_responses
    assert (answer.error_code, answer.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 2)
    assert [(each.node_id, each.host, each.port) for each in refused.node_endpoints] == [(2, "node2", 9092)]
    wanted = FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition=0, partition_max_bytes=1_000)])
    fetch = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1_000, session_epoch=-1, topics=[wanted])
    fetched = nodes.ask(1, fetch, FetchResponse)
    (part,) = fetched.responses[0].partitions
    assert (part.error_code, part.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 2)
    assert [(each.node_id, each.host, each.port) for each in fetched.node_endpoints] == [(2, "node2", 9092)]


def _knows_all(node: Node) -> bool:
    return node.image.topic("t") is not None and sorted(node.image.controllers) == [1, 2, 3]


def test_every_broker_says_the_same_about_the_cluster(nodes: SimNodes) -> None:
    nodes.create_topic(1, "t", leaders=[1, 2, 3])
    for node_id, node in nodes.nodes.items():
        nodes.until(partial(_knows_all, node))
        answer = nodes.ask(node_id, MetadataRequest(topics=None), MetadataResponse)
        assert [(each.node_id, each.host) for each in answer.brokers] == [(1, "node1"), (2, "node2"), (3, "node3")]
        (topic,) = answer.topics
        assert [(part.leader_id, part.error_code) for part in topic.partitions] == [(1, 0), (2, 0), (3, 0)]
        controllers = nodes.ask(
            node_id, DescribeClusterRequest(endpoint_type=2), DescribeClusterResponse, port=CONTROLLER_PORT
        )
        assert [(each.broker_id, each.host) for each in controllers.brokers] == [
            (1, "node1"),
            (2, "node2"),
            (3, "node3"),
        ]
        assert controllers.controller_id == nodes.leader_id


def test_producer_ids_of_all_brokers_differ(nodes: SimNodes) -> None:
    ids = [
        nodes.ask(node_id, InitProducerIdRequest(transactional_id=None), InitProducerIdResponse).producer_id
        for node_id in (1, 2, 3, 1, 2, 3)
    ]
    assert len(set(ids)) == 6 and -1 not in ids


def find(nodes: SimNodes, node_id: int, key_type: int, keys: list[str]) -> dict[str, int]:
    while True:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)
        found = nodes.ask(node_id, request, FindCoordinatorResponse)
        if all(each.error_code == 0 for each in found.coordinators):
            return {each.key: each.node_id for each in found.coordinators}
        nodes.clock.run_for(100)


def test_coordinators_are_spread_and_every_broker_finds_them(nodes: SimNodes) -> None:
    groups = [f"group-{number}" for number in range(30)]
    found = [find(nodes, node_id, 0, groups) for node_id in (1, 2, 3)]
    assert found[0] == found[1] == found[2]
    assert set(found[0].values()) == {1, 2, 3}
    wrong = next(id_ for id_ in (1, 2, 3) if id_ != found[0]["group-0"])
    refused = nodes.ask(wrong, DescribeGroupsRequest(groups=["group-0"]), DescribeGroupsResponse)
    assert refused.groups[0].error_code == ErrorCode.NOT_COORDINATOR


def test_groups_read_partitions_of_all_brokers_and_commit_to_their_coordinator(nodes: SimNodes) -> None:
    nodes.create_topic(1, "t", leaders=[1, 2, 3])
    client = nodes.client()
    write_30_records(nodes, client)
    names = [f"g{number}" for number in range(8)]
    assert set(find(nodes, 1, 0, names).values()) == {1, 2, 3}
    for name in names:
        member = GroupConsumer(nodes.client(), name, ["t"], ConsumerConfig(), BEGINNING)
        member.start()
        seen: list[int] = []

        def has_read_all(member: GroupConsumer = member, seen: list[int] = seen) -> bool:
            for fetched in member.poll():
                records = list(fetched.records())
                seen.extend(int(record.value or b"") for record in records)
                member.done_with(fetched.topic_partition, records[-1].offset + 1)
            return len(seen) >= 30

        nodes.until(has_read_all)
        assert sorted(seen) == list(range(30))
        nodes.run(member.close())
        offsets = nodes.run(fetch_offsets(nodes.client(), name))
        assert {each.partition: where.offset for each, where in offsets.items()} == {0: 10, 1: 10, 2: 10}


def test_transactions_span_brokers_and_their_coordinators(nodes: SimNodes) -> None:
    nodes.create_topic(1, "t", leaders=[1, 2, 3])
    names = [f"tx-{number}" for number in range(6)]
    assert len(set(find(nodes, 1, 1, names).values())) > 1
    for number, name in enumerate(names):
        producer = Producer(nodes.client(), ProducerConfig(linger_ms=0, transactional_id=name))
        nodes.run(producer.init_transactions())
        nodes.run(producer.prepare("t"))
        for commit in (True, False):
            producer.begin()
            for index in range(3):
                producer.send("t", b"%d" % (number if commit else 1000), partition=index)
            nodes.run(producer.commit() if commit else producer.abort())
        producer.close()
    assert read(nodes, nodes.client(), "t", 18) == [list(range(6))] * 3


def test_offsets_are_committed_in_a_transaction_on_another_broker(nodes: SimNodes) -> None:
    nodes.create_topic(1, "t", leaders=[1, 2, 3])
    groups = find(nodes, 1, 0, [f"g{number}" for number in range(9)])
    transactions = find(nodes, 1, 1, [f"tx{number}" for number in range(9)])
    for group, held_by in list(groups.items())[:4]:
        name = next(each for each, node_id in transactions.items() if node_id != held_by)
        producer = Producer(nodes.client(), ProducerConfig(linger_ms=0, transactional_id=name))
        nodes.run(producer.init_transactions())
        nodes.run(producer.prepare("t"))
        producer.begin()
        producer.send("t", b"1", partition=0)
        nodes.run(producer.send_offsets(group, {TopicPartition("t", 0): OffsetAndMetadata(5)}))
        nodes.run(producer.commit())
        producer.close()
        fetched = nodes.run(fetch_offsets(nodes.client(), group, [TopicPartition("t", 0)]))
        assert {each: where.offset for each, where in fetched.items()} == {TopicPartition("t", 0): 5}


# --- Nodes that start and stop


def test_a_request_survives_the_end_of_the_active_controller(nodes: SimNodes) -> None:
    nodes.create_topic(1, "before", leaders=[1])
    leader_id = nodes.leader_id
    assert leader_id is not None
    survivor = nodes.others(leader_id)[0]
    topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
    killed_ms = nodes.clock.monotonic_ms()
    nodes.kill(leader_id)
    pending = nodes.send(survivor, CreateTopicsRequest(topics=[topic], timeout_ms=20_000))
    response = nodes.settle(pending)
    assert response.topics[0].error_code == ErrorCode.NONE
    assert nodes.clock.monotonic_ms() - killed_ms < 3_000
    assert nodes.nodes[survivor].image.topic("before") is not None


@pytest.mark.parametrize("passed_ms", [4, 8, 11])
def test_a_controller_that_is_killed_while_others_sync_what_it_sent_is_replaced_at_once(passed_ms: int) -> None:
    nodes = SimNodes(seed=passed_ms + 1).start()
    leader_id = nodes.leader_id
    assert leader_id is not None
    survivor = nodes.others(leader_id)[0]
    topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
    pending = nodes.send(survivor, CreateTopicsRequest(topics=[topic], timeout_ms=20_000))
    nodes.clock.run_for(passed_ms)
    killed_ms = nodes.clock.monotonic_ms()
    nodes.kill(leader_id)
    nodes.settle(pending)
    nodes.until(lambda: nodes.leader_id is not None)
    assert nodes.clock.monotonic_ms() - killed_ms < 600


@pytest.mark.parametrize("clean", [True, False])
def test_partitions_of_a_broker_that_is_down_wait_for_it(nodes: SimNodes, clean: bool) -> None:
    nodes.create_topic(1, "t", leaders=[1, 2, 3])
    gone = nodes.others(nodes.leader_id)[0]
    asked = nodes.leader_id
    assert asked is not None
    client = nodes.client()
    producer = Producer(client, ProducerConfig(linger_ms=0))
    nodes.run(producer.prepare("t"))
    for index in range(3):
        producer.send("t", b"1", partition=index)
    nodes.settle(producer.flush())
    if clean:
        nodes.stop(gone)
    else:
        nodes.kill(gone)

    def leaders() -> list[int]:
        partitions = nodes.nodes[asked].image.topics_by_name["t"].partitions
        return [partitions[index].leader for index in range(3)]

    nodes.until(lambda: leaders() == [-1 if id_ == gone else id_ for id_ in (1, 2, 3)])
    (topic,) = nodes.ask(asked, MetadataRequest(topics=[MetadataRequestTopic(name="t")]), MetadataResponse).topics
    assert topic.partitions[gone - 1].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    nodes.restart(gone)
    nodes.until(lambda: leaders() == [1, 2, 3])
    assert read(nodes, nodes.client(), "t", 3) == [[1], [1], [1]]


def test_a_cluster_that_was_killed_at_once_has_everything(nodes: SimNodes) -> None:
    nodes.create_topic(1, "t", leaders=[1, 2, 3])
    first = nodes.ask(2, InitProducerIdRequest(transactional_id=None), InitProducerIdResponse).producer_id
    client = nodes.client()
    producer = Producer(client, ProducerConfig(linger_ms=0))
    nodes.run(producer.prepare("t"))
    for index in range(3):
        producer.send("t", b"1", partition=index)
    nodes.settle(producer.flush())
    for node_id in (1, 2, 3):
        nodes.kill(node_id)
    nodes.start()
    assert read(nodes, nodes.client(), "t", 3) == [[1], [1], [1]]
    assert nodes.ask(2, InitProducerIdRequest(transactional_id=None), InitProducerIdResponse).producer_id > first


def test_an_isolated_controller_is_replaced_and_its_broker_fenced(nodes: SimNodes) -> None:
    old = nodes.leader_id
    assert old is not None
    for other in nodes.others(old):
        nodes.network.cut(f"node{old}", f"node{other}")
    asked = nodes.others(old)[0]
    nodes.create_topic(asked, "t", leaders=[asked])
    nodes.until(lambda: nodes.nodes[asked].image.brokers[old].fenced)
    assert nodes.nodes[old].image.topic("t") is None
    nodes.network.heal()
    nodes.until(lambda: nodes.nodes[old].image.topic("t") is not None)
    nodes.until(lambda: not nodes.nodes[asked].image.brokers[old].fenced)
    assert len([node for node in nodes.nodes.values() if node.metadata.active is not None]) == 1


def test_a_cluster_that_stops_as_a_whole_does_not_wait_for_a_controller(nodes: SimNodes) -> None:
    nodes.create_topic(1, "t", leaders=[1, 2, 3])
    started_ms = nodes.clock.monotonic_ms()
    stopped = [node.stop() for node in nodes.nodes.values()]
    nodes.until(lambda: all(each.done for each in stopped))
    assert nodes.clock.monotonic_ms() - started_ms < 9_000


@pytest.mark.parametrize("seed", range(1, 5))
def test_the_last_two_nodes_stop_without_waiting_for_each_other(seed: int) -> None:
    """This also holds if the controller waits for a commit that needs the node which has stopped."""
    nodes = SimNodes(seed=seed).start()
    nodes.stop(nodes.others(nodes.leader_id)[0])
    started_ms = nodes.clock.monotonic_ms()
    stopped = [node.stop() for node in nodes.nodes.values()]
    nodes.until(lambda: all(each.done for each in stopped))
    assert nodes.clock.monotonic_ms() - started_ms < 1_000


def test_a_broker_that_is_unregistered_while_it_runs_registers_again(nodes: SimNodes) -> None:
    nodes.create_topic(1, "t", leaders=[1, 2, 3])
    asked, gone = nodes.others(nodes.leader_id)
    before = nodes.nodes[asked].image.brokers[gone].epoch
    response = nodes.ask(asked, UnregisterBrokerRequest(broker_id=gone), UnregisterBrokerResponse)
    assert response.error_code == ErrorCode.NONE

    def is_back() -> bool:
        broker = nodes.nodes[asked].image.brokers.get(gone)
        return broker is not None and broker.epoch > before and not broker.fenced

    nodes.until(is_back)
    nodes.until(lambda: nodes.nodes[asked].image.topics_by_name["t"].partitions[gone - 1].leader == gone)


def test_settings_are_changed_through_any_node_and_seen_there_at_once(nodes: SimNodes) -> None:
    nodes.create_topic(1, "t", leaders=[1, 2, 3])
    for node_id in (1, 2, 3):
        nodes.until(partial(_knows_all, nodes.nodes[node_id]))
        change = AlterableConfig(name="retention.ms", config_operation=0, value=str(node_id * 1_000))
        resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=[change])
        answer = nodes.ask(
            node_id, IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse
        )
        assert answer.responses[0].error_code == ErrorCode.NONE
        assert nodes.nodes[node_id].image.topic_configs("t") == {"retention.ms": str(node_id * 1_000)}


def test_a_deleted_topic_is_deleted_on_every_broker(nodes: SimNodes) -> None:
    nodes.create_topic(1, "t", leaders=[1, 2, 3])
    for node_id in (1, 2, 3):
        nodes.until(partial(_knows_all, nodes.nodes[node_id]))
    asked = nodes.others(nodes.leader_id)[0]
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=5_000)
    assert nodes.ask(asked, request, DeleteTopicsResponse).responses[0].error_code == ErrorCode.NONE
    assert nodes.nodes[asked].image.topic("t") is None
    nodes.until(lambda: all(len(node.partitions) == 0 for node in nodes.nodes.values()))
    nodes.create_topic(asked, "t", leaders=[3, 2, 1])


def test_a_client_with_a_short_time_out_is_answered_in_time_without_a_quorum(nodes: SimNodes) -> None:
    survivor = nodes.others(nodes.leader_id)[0]
    for node_id in nodes.others(survivor):
        nodes.kill(node_id)
    started_ms = nodes.clock.monotonic_ms()
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    response = nodes.ask(survivor, CreateTopicsRequest(topics=[topic], timeout_ms=2_000), CreateTopicsResponse)
    assert response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert nodes.clock.monotonic_ms() - started_ms < 2_500


def test_a_topic_that_is_created_by_itself_is_described_by_the_broker_that_was_asked(nodes: SimNodes) -> None:
    for node_id in (1, 2, 3):
        request = MetadataRequest(topics=[MetadataRequestTopic(name=f"t{node_id}")], allow_auto_topic_creation=True)
        (topic,) = nodes.ask(node_id, request, MetadataResponse).topics
        assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 1)


def test_a_feature_is_not_raised_above_what_a_controller_knows(nodes: SimNodes) -> None:
    old = ControllerRegistrationRequest(controller_id=9, incarnation_id=b"o" * 16, features=[])
    leader_id = nodes.leader_id
    assert leader_id is not None
    answer = nodes.ask(leader_id, old, ControllerRegistrationResponse, port=CONTROLLER_PORT)
    assert answer.error_code == ErrorCode.NONE
    update = FeatureUpdateKey(feature="share.version", max_version_level=1, upgrade_type=1)
    refused = nodes.ask(2, UpdateFeaturesRequest(feature_updates=[update]), UpdateFeaturesResponse)
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "controller 9 knows 0 to 0" in (refused.error_message or "")
