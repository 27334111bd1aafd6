"""The metadata replica: an image of what is committed, and an active controller for exactly one term at a time."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from quire.protocol.messages.metadata_records import FeatureLevelRecord, TopicRecord
from quire.protocol.schema import Message
from quire.raft.control_state import ControlState
from quire.raft.errors import MetadataLogError
from quire.raft.log_summary import LogPosition
from quire.raft.snapshot_file import Snapshot
from tests.controller.sim_controller import FROM_A_NODE, NODE_ID, SimController


def test_each_term_has_its_own_controller() -> None:
    sim = SimController().start()
    first = sim.replica.active
    assert first is not None
    sim.replica.leader_changed(None, 2)
    assert sim.replica.active is None
    sim.replica.leader_changed(NODE_ID, 3)
    assert sim.replica.active is not None and sim.replica.active is not first


def test_uncommitted_records_of_a_term_are_unknown_to_the_next() -> None:
    sim = SimController().start()
    topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
    written = sim.controller.create_topics(CreateTopicsRequest(topics=[topic]), FROM_A_NODE)
    sim.replica.leader_changed(None, 2)
    assert written.value.topics[0].error_code == ErrorCode.NOT_CONTROLLER
    sim.replica.leader_changed(NODE_ID, 3)
    assert not sim.controller.create_topics(CreateTopicsRequest(topics=[topic]), FROM_A_NODE).done, "not a duplicate"


def test_a_request_in_turns_ends_with_the_term() -> None:
    sim = SimController().start()
    topics = [CreatableTopic(name=f"t{number}", num_partitions=1, replication_factor=1) for number in range(3_000)]
    pending = sim.controller.create_topics(CreateTopicsRequest(topics=topics), FROM_A_NODE)
    sim.replica.leader_changed(None, 2)
    sim.run()
    assert {topic.error_code for topic in pending.value.topics} == {ErrorCode.NOT_CONTROLLER}


def test_timers_of_a_term_do_not_outlive_it() -> None:
    sim = SimController().start()
    epoch = sim.register(2)
    sim.heartbeat(2, epoch)
    sim.replica.leader_changed(None, 2)
    sim.run(60_000)
    assert sim.image.brokers[2].is_active, "only a leader fences"


def test_a_wait_for_the_image_that_is_given_up_is_forgotten() -> None:
    sim = SimController().start()
    called: list[str] = []
    next_offset = sim.image.offset + 1
    forget = sim.replica.when_applied(next_offset, lambda: called.append("given up"))
    sim.replica.when_applied(next_offset, lambda: called.append("waits"))
    forget()
    forget()
    sim.register(2)
    assert called == ["waits"]


def snapshot_of(*records: Message) -> Snapshot:
    return Snapshot(LogPosition(7, 1_000), 5, ControlState(), list(records))


def test_a_snapshot_becomes_the_image_only_when_it_replaces_the_log() -> None:
    sim = SimController().start()
    waited: list[str] = []
    sim.replica.when_applied(999, lambda: waited.append("done"))
    before = sim.image
    replace_state = sim.replica.prepare_snapshot(snapshot_of(TopicRecord(name="orders", topic_id=b"t" * 16)))
    assert sim.image is before and sim.image.topic("orders") is None and not waited
    replace_state()
    assert sim.image.topic("orders") is not None
    assert (sim.image.offset, sim.image.epoch, sim.image.timestamp_ms) == (999, 7, 5)
    assert waited == ["done"]


def test_a_snapshot_that_this_node_does_not_support_fails_only_if_it_is_used() -> None:
    sim = SimController().start()
    unsupported = snapshot_of(FeatureLevelRecord(name="group.version", feature_level=9))
    replace_state = sim.replica.prepare_snapshot(unsupported)
    with pytest.raises(MetadataLogError, match=r"group\.version"):
        replace_state()
