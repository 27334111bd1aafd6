"""The active controller handles one request after the other, and answers each when it is committed."""

import pytest

from quire.metadata.delta import ImageDelta
from quire.metadata.features import SUPPORTED
from quire.metadata.image import ClusterImage
from quire.protocol.errors import ErrorCode
from quire.protocol.messages import describe_quorum as quorum
from quire.protocol.messages import incremental_alter_configs as incremental
from quire.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from quire.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from quire.protocol.messages.controller_registration import ControllerRegistrationRequest, Feature, Listener
from quire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from quire.protocol.messages.delete_topics import DeleteTopicsRequest
from quire.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.controller.sim_controller import FROM_A_NODE, NODE_ID, SimController


def wanted(*names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    )


def test_a_new_cluster_starts_with_the_features_it_was_formatted_with() -> None:
    sim = SimController().open()
    assert sim.replica.active is not None
    assert sim.image.features == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "transaction.version": 2,
    }
    assert sim.image.broker_configs(None) == {"min.insync.replicas": "1"}, "one value for the whole cluster"


def test_an_answer_comes_when_the_records_are_on_disk_and_published() -> None:
    sim = SimController().start()
    published: list[list[bytes]] = []

    def publish(image: ClusterImage, delta: ImageDelta) -> None:
        published.append(list(delta.created_topics))

    sim.replica.loader.subscribe(publish)
    published.clear()
    pending = sim.controller.create_topics(wanted("orders"))
    told: list[bool] = []
    pending.when_done(lambda _: told.append(bool(published)))
    assert not pending.done and sim.image.topic("orders") is None
    sim.run()
    assert pending.value.topics[0].error_code == 0
    assert told == [True], "the node acts on a change before its client hears that it is done"
    assert published == [[pending.value.topics[0].topic_id]]


def test_a_request_sees_what_the_one_before_it_did() -> None:
    sim = SimController().start()
    first = sim.controller.create_topics(wanted("orders"))
    second = sim.controller.create_topics(wanted("orders"))
    grown = sim.controller.create_partitions(
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="orders", count=4, assignments=None)])
    )
    assert not second.done, "it rests on a record that may still be lost"
    sim.run()
    assert first.value.topics[0].error_code == 0
    assert second.value.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert grown.value.results[0].error_code == 0
    assert len(sim.image.topics_by_name["orders"].partitions) == 4


def test_a_refusal_without_records_is_sent_at_once() -> None:
    sim = SimController().start()
    assert sim.controller.create_topics(wanted("")).done


def test_every_kind_of_request_is_answered() -> None:
    sim = SimController().start()
    controller = sim.controller
    sim.create("orders")
    setting = incremental.AlterableConfig(name="retention.ms", config_operation=0, value="5")
    resource = incremental.AlterConfigsResource(resource_type=2, resource_name="orders", configs=[setting])
    changed = sim.settle(
        controller.incremental_alter_configs(incremental.IncrementalAlterConfigsRequest(resources=[resource]))
    )
    assert changed.responses[0].error_code == 0 and sim.image.topic_configs("orders") == {"retention.ms": "5"}
    whole = AlterConfigsRequest(resources=[AlterConfigsResource(resource_type=2, resource_name="orders")])
    assert sim.settle(controller.alter_configs(whole)).responses[0].error_code == 0
    assert sim.image.topic_configs("orders") == {}
    update = FeatureUpdateKey(feature="group.version", max_version_level=1)
    assert sim.settle(controller.update_features(UpdateFeaturesRequest(feature_updates=[update]))).error_code == 0
    assert sim.image.features["group.version"] == 1
    ids = AllocateProducerIdsRequest(broker_id=NODE_ID, broker_epoch=sim.broker_epoch)
    assert sim.settle(controller.allocate_producer_ids(ids)).producer_id_len == 1000
    gone = sim.settle(controller.delete_topics(DeleteTopicsRequest(topic_names=["orders"])))
    assert gone.responses[0].error_code == 0 and sim.image.topics_by_name == {}


def test_everything_is_still_there_after_a_restart() -> None:
    sim = SimController().start()
    sim.create("orders", 3)
    sim.settle(
        sim.controller.allocate_producer_ids(
            AllocateProducerIdsRequest(broker_id=NODE_ID, broker_epoch=sim.broker_epoch)
        )
    )
    while not sim.heartbeat(want_shut_down=True).should_shut_down:
        pass  # A broker that still runs would be fenced after the restart.
    before = sim.image.copy()
    sim.replica.close()
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


def test_requests_that_wait_are_refused_when_the_term_ends() -> None:
    sim = SimController().start()
    waiting = sim.controller.create_topics(wanted("orders"), FROM_A_NODE)
    sim.replica.close()
    assert waiting.value.topics[0].error_code == ErrorCode.NOT_CONTROLLER


def test_a_silent_broker_is_fenced_and_returns() -> None:
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
    refused = sim.settle(sim.controller.register_broker(sim.registration(2), FROM_A_NODE))
    assert refused.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    sim.run(9_100)
    sim.register(2)


def test_a_process_elsewhere_with_the_controllers_node_id_is_not_its_own_broker() -> None:
    sim = SimController().start()
    elsewhere = sim.registration(NODE_ID, incarnation_id=b"e" * 16)
    refused = sim.settle(sim.controller.register_broker(elsewhere, FROM_A_NODE))
    assert refused.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    sim.replica.leader_changed(None, 2)
    sim.replica.leader_changed(NODE_ID, 3)
    sim.heartbeat()
    sim.run(60_000)
    assert sim.image.brokers[NODE_ID].is_active, "its own broker is, also in a later term"


def test_topics_spread_over_the_available_brokers() -> None:
    sim = SimController().start()
    epoch = sim.register(2)
    sim.heartbeat(2, epoch)
    created = sim.create("orders", partitions=4, replication_factor=2).topics[0]
    assert created.error_code == 0
    leaders = [partition.leader for partition in sim.image.topics_by_name["orders"].partitions.values()]
    assert sorted(leaders) == [1, 1, 2, 2]


def test_a_broker_epoch_is_the_offset_of_its_registration() -> None:
    sim = SimController().open()
    expected = sim.replica.log.next_offset
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
    assert sim.settle(sim.controller.register_controller(request)).error_code == 0
    assert sim.image.controllers[NODE_ID].endpoints[0].port == 9093


def test_an_idle_node_writes_nothing() -> None:
    sim = SimController().start()
    sim.run(1_000)
    before = sim.disk.operations
    for _ in range(20):
        sim.run(2_000)
        sim.heartbeat()
    assert sim.disk.operations == before


def test_an_idle_log_grows_while_it_has_followers(monkeypatch: pytest.MonkeyPatch) -> None:
    sim = SimController().start()
    followers = False
    monkeypatch.setattr(type(sim.replica.log), "has_followers", property(lambda _: followers))
    before = sim.image.offset
    sim.run(5_000)
    assert sim.image.offset == before
    followers = True
    sim.run(5_000)
    assert before + 9 <= sim.image.offset <= before + 11
    followers = False
    before = sim.image.offset
    sim.run(5_000)
    assert sim.image.offset <= before + 1


def test_a_snapshot_of_the_committed_state_is_taken_and_used() -> None:
    sim = SimController().start()
    sim.create("orders", 3)
    sim.replica.log.take_snapshot()
    sim.run()
    sim.create("later")
    again = SimController(sim.disk.kill(), seed=2).open()
    assert sorted(again.image.topics_by_name) == ["later", "orders"]


def test_a_failing_disk_is_reported_once_and_nothing_more_is_answered() -> None:
    sim = SimController().start()
    sim.disk.fail_when(lambda operation: operation.kind == "sync")
    pending = sim.controller.create_topics(wanted("orders"))
    sim.run(1_000)
    assert len(sim.failures) == 1
    assert not pending.done


def test_metadata_of_the_future_is_refused_by_name() -> None:
    sim = SimController().start()
    sim.replica.close()
    disk = sim.disk.kill()
    again = SimController(disk, seed=2)
    SUPPORTED["metadata.version"], before = (7, 29), SUPPORTED["metadata.version"]
    try:
        again.open()
    finally:
        SUPPORTED["metadata.version"] = before
    assert "metadata.version at level 30" in str(again.failures[0])
    assert again.replica.active is None


def test_the_quorum_describes_itself() -> None:
    sim = SimController().start()
    topics = [
        quorum.DescribeQuorumRequestTopicData(
            topic_name="__cluster_metadata", partitions=[quorum.DescribeQuorumRequestPartitionData()]
        )
    ]
    response = sim.controller.describe_quorum(quorum.DescribeQuorumRequest(topics=topics)).value
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
    response = sim.controller.describe_quorum(quorum.DescribeQuorumRequest(topics=topics)).value
    assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
