"""The active controller: one request after the other, each answered when it is committed."""

from quire.metadata.delta import ImageDelta
from quire.metadata.features import SUPPORTED
from quire.metadata.image import ClusterImage
from quire.protocol.errors import ErrorCode
from quire.protocol.messages import describe_quorum as quorum
from quire.protocol.messages import incremental_alter_configs as incremental
from quire.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from quire.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from quire.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from quire.protocol.messages.controller_registration import ControllerRegistrationRequest, Feature, Listener
from quire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from quire.protocol.messages.delete_topics import DeleteTopicsRequest
from quire.protocol.messages.unregister_broker import UnregisterBrokerRequest
from quire.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.controller.sim_controller import NODE_ID, SimController


def wanted(*names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    )


def test_a_new_cluster_starts_with_the_features_it_was_formatted_with() -> None:
    sim = SimController().open()
    assert sim.controller.is_active
    assert sim.image.features == {"metadata.version": 30, "group.version": 1, "transaction.version": 2}


def test_whoever_waits_for_the_controller_hears_of_it_once() -> None:
    sim = SimController()
    heard: list[str] = []
    sim.controller.when_active(lambda: heard.append("then"))
    assert heard == []
    sim.open()
    sim.controller.when_active(lambda: heard.append("at once"))
    assert heard == ["then", "at once"]


def test_an_answer_comes_when_the_records_are_on_disk_and_published() -> None:
    sim = SimController().start()
    published: list[list[bytes]] = []

    def publish(image: ClusterImage, delta: ImageDelta) -> None:
        published.append(list(delta.created_topics))

    sim.controller.loader.subscribe(publish)
    published.clear()
    pending = sim.controller.create_topics(wanted("orders"), sim.now_ms())
    told: list[bool] = []
    pending.when_done(lambda _: told.append(bool(published)))
    assert not pending.done and sim.image.topic("orders") is None
    sim.run()
    assert pending.value.topics[0].error_code == 0
    assert told == [True], "the node acts on a change before its client hears that it is done"
    assert published == [[pending.value.topics[0].topic_id]]


def test_a_request_sees_what_the_one_before_it_did() -> None:
    sim = SimController().start()
    first = sim.controller.create_topics(wanted("orders"), sim.now_ms())
    second = sim.controller.create_topics(wanted("orders"), sim.now_ms())
    grown = sim.controller.create_partitions(
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="orders", count=4, assignments=None)]), sim.now_ms()
    )
    assert not second.done, "it rests on a record that may still be lost"
    sim.run()
    assert first.value.topics[0].error_code == 0
    assert second.value.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert grown.value.results[0].error_code == 0
    assert len(sim.image.topics_by_name["orders"].partitions) == 4


def test_a_refusal_that_waits_for_nobody_is_given_at_once() -> None:
    sim = SimController().start()
    assert sim.controller.create_topics(wanted(""), sim.now_ms()).done


def test_every_kind_of_request_is_answered() -> None:
    sim = SimController().start()
    controller, now_ms = sim.controller, sim.now_ms()
    sim.create("orders")
    setting = incremental.AlterableConfig(name="retention.ms", config_operation=0, value="5")
    resource = incremental.AlterConfigsResource(resource_type=2, resource_name="orders", configs=[setting])
    changed = sim.settle(
        controller.incremental_alter_configs(incremental.IncrementalAlterConfigsRequest(resources=[resource]), now_ms)
    )
    assert changed.responses[0].error_code == 0 and sim.image.topic_configs("orders") == {"retention.ms": "5"}
    whole = AlterConfigsRequest(resources=[AlterConfigsResource(resource_type=2, resource_name="orders")])
    assert sim.settle(controller.alter_configs(whole, now_ms)).responses[0].error_code == 0
    assert sim.image.topic_configs("orders") == {}
    update = FeatureUpdateKey(feature="group.version", max_version_level=1)
    assert (
        sim.settle(controller.update_features(UpdateFeaturesRequest(feature_updates=[update]), now_ms)).error_code == 0
    )
    assert sim.image.features["group.version"] == 1
    ids = AllocateProducerIdsRequest(broker_id=NODE_ID, broker_epoch=sim.broker_epoch)
    assert sim.settle(controller.allocate_producer_ids(ids, now_ms)).producer_id_len == 1000
    gone = sim.settle(controller.delete_topics(DeleteTopicsRequest(topic_names=["orders"]), now_ms))
    assert gone.responses[0].error_code == 0 and sim.image.topics_by_name == {}


def test_everything_is_there_after_a_restart() -> None:
    sim = SimController().start()
    sim.create("orders", 3)
    sim.settle(
        sim.controller.allocate_producer_ids(
            AllocateProducerIdsRequest(broker_id=NODE_ID, broker_epoch=sim.broker_epoch), sim.now_ms()
        )
    )
    before = sim.image.copy()
    sim.controller.close()
    again = SimController(sim.disk.kill(), seed=2).open()
    assert again.image.topics_by_id == before.topics_by_id
    assert again.image.next_producer_id == 1000
    assert again.image.brokers == before.brokers


def test_a_restarted_broker_leads_its_partitions_in_a_new_epoch() -> None:
    sim = SimController().start()
    sim.create("orders")
    again = SimController(sim.disk.kill(), seed=2).start()
    partition = again.image.topics_by_name["orders"].partitions[0]
    assert (partition.leader, partition.isr, partition.leader_epoch) == (NODE_ID, (NODE_ID,), 2)


def test_a_controller_that_closed_refuses_and_so_does_what_waited() -> None:
    sim = SimController().start()
    waiting = sim.controller.create_topics(wanted("orders"), sim.now_ms())
    sim.controller.close()
    assert waiting.value.topics[0].error_code == ErrorCode.NOT_CONTROLLER
    controller, now_ms, refused = sim.controller, sim.now_ms(), ErrorCode.NOT_CONTROLLER
    assert controller.create_topics(wanted("a"), now_ms).value.topics[0].error_code == refused
    gone = controller.delete_topics(DeleteTopicsRequest(topic_names=["a"]), now_ms)
    assert gone.value.responses[0].error_code == refused
    grown = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a", count=2)])
    assert controller.create_partitions(grown, now_ms).value.results[0].error_code == refused
    whole = AlterConfigsRequest(resources=[AlterConfigsResource(resource_type=2, resource_name="a")])
    assert controller.alter_configs(whole, now_ms).value.responses[0].error_code == refused
    single = incremental.IncrementalAlterConfigsRequest(
        resources=[incremental.AlterConfigsResource(resource_type=2, resource_name="a")]
    )
    assert controller.incremental_alter_configs(single, now_ms).value.responses[0].error_code == refused
    assert controller.update_features(UpdateFeaturesRequest(), now_ms).value.error_code == refused
    assert controller.allocate_producer_ids(AllocateProducerIdsRequest(), now_ms).value.error_code == refused
    assert controller.register_broker(sim.registration(), now_ms).value.error_code == refused
    assert controller.broker_heartbeat(BrokerHeartbeatRequest(), now_ms).value.error_code == refused
    assert controller.register_controller(ControllerRegistrationRequest(), now_ms).value.error_code == refused
    assert controller.unregister_broker(UnregisterBrokerRequest(), now_ms).value.error_code == refused


def test_a_silent_broker_is_fenced_and_comes_back() -> None:
    sim = SimController().start()
    epoch = sim.register(2)
    sim.heartbeat(2, epoch)
    sim.create("orders", replication_factor=2)
    for _ in range(10):
        sim.run(2_000)
        sim.heartbeat(2, epoch)
    assert sim.image.brokers[2].is_active
    sim.run(9_100)
    assert sim.image.brokers[2].fenced
    assert sim.image.topics_by_name["orders"].partitions[0].isr == (NODE_ID,)
    assert not sim.heartbeat(2, epoch).is_fenced
    assert sim.image.brokers[2].is_active


def test_the_broker_in_the_same_process_is_never_taken_for_gone() -> None:
    sim = SimController().start()
    sim.run(60_000)
    assert sim.image.brokers[NODE_ID].is_active


def test_a_second_life_of_another_broker_waits_until_the_first_is_silent() -> None:
    sim = SimController().start()
    sim.register(2)
    refused = sim.settle(sim.controller.register_broker(sim.registration(2), sim.now_ms()))
    assert refused.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    sim.run(9_100)
    sim.register(2)


def test_topics_spread_over_the_brokers_that_are_there() -> None:
    sim = SimController().start()
    epoch = sim.register(2)
    sim.heartbeat(2, epoch)
    created = sim.create("orders", partitions=4, replication_factor=2).topics[0]
    assert created.error_code == 0
    leaders = [partition.leader for partition in sim.image.topics_by_name["orders"].partitions.values()]
    assert sorted(leaders) == [1, 1, 2, 2]


def test_a_broker_epoch_is_the_offset_of_its_registration() -> None:
    sim = SimController().open()
    expected = sim.controller.log.next_offset
    assert sim.register() == expected == sim.image.brokers[NODE_ID].epoch


def test_a_controller_registers_too() -> None:
    sim = SimController().open()
    request = ControllerRegistrationRequest(
        controller_id=NODE_ID,
        incarnation_id=b"c" * 16,
        listeners=[Listener(name="CONTROLLER", host="localhost", port=9093)],
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED.items()
        ],
    )
    assert sim.settle(sim.controller.register_controller(request, sim.now_ms())).error_code == 0
    assert sim.image.controllers[NODE_ID].endpoints[0].port == 9093


def test_an_idle_node_writes_nothing() -> None:
    sim = SimController().start()
    sim.run(1_000)
    before = sim.disk.operations
    for _ in range(20):
        sim.run(2_000)
        sim.heartbeat()
    assert sim.disk.operations == before


def test_a_snapshot_of_the_committed_state_is_taken_and_used() -> None:
    sim = SimController().start()
    sim.create("orders", 3)
    sim.controller.log.take_snapshot()
    sim.run()
    sim.create("later")
    again = SimController(sim.disk.kill(), seed=2).open()
    assert sorted(again.image.topics_by_name) == ["later", "orders"]


def test_a_failing_disk_is_reported_once_and_nothing_more_is_answered() -> None:
    sim = SimController().start()
    sim.disk.fail_when(lambda operation: operation.kind == "sync")
    pending = sim.controller.create_topics(wanted("orders"), sim.now_ms())
    sim.run(1_000)
    assert len(sim.failures) == 1
    assert not pending.done


def test_metadata_of_the_future_is_refused_by_name() -> None:
    sim = SimController().start()
    sim.controller.close()
    disk = sim.disk.kill()
    again = SimController(disk, seed=2)
    SUPPORTED["metadata.version"], before = (7, 29), SUPPORTED["metadata.version"]
    try:
        again.open()
    finally:
        SUPPORTED["metadata.version"] = before
    assert "metadata.version at level 30" in str(again.failures[0])
    assert not again.controller.is_active


def test_the_quorum_describes_itself() -> None:
    sim = SimController().start()
    topics = [
        quorum.DescribeQuorumRequestTopicData(
            topic_name="__cluster_metadata", partitions=[quorum.DescribeQuorumRequestPartitionData()]
        )
    ]
    response = sim.controller.describe_quorum(quorum.DescribeQuorumRequest(topics=topics))
    described = response.topics[0].partitions[0]
    assert (described.leader_id, described.leader_epoch) == (NODE_ID, 1)
    assert described.high_watermark == sim.image.offset + 1
    voter = described.current_voters[0]
    assert (voter.replica_id, voter.replica_directory_id) == (NODE_ID, sim.directory_id)
    assert (voter.log_end_offset, voter.last_fetch_timestamp) == (described.high_watermark, sim.now_ms())
    assert [(node.node_id, [each.name for each in node.listeners]) for node in response.nodes] == [(1, ["CONTROLLER"])]


def test_nothing_else_has_a_quorum() -> None:
    sim = SimController().start()
    topics = [
        quorum.DescribeQuorumRequestTopicData(
            topic_name="orders", partitions=[quorum.DescribeQuorumRequestPartitionData()]
        )
    ]
    response = sim.controller.describe_quorum(quorum.DescribeQuorumRequest(topics=topics))
    assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
