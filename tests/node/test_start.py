"""A node's start, state by state: which listeners answer when, and what a stop or a crash during the start leaves."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from quire.network.handler import ConnectionInfo, EncodedResponse
from quire.node.node_state import NodeProgress, NodeState
from quire.pending import Pending
from quire.protocol import apis, codec
from quire.protocol.messages.api_versions import ApiVersionsRequest
from quire.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from quire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quire.protocol.schema import Message
from quire.replication.follower_role import FollowerRole
from quire.storage.directory import checkpoints
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.directory.log_loading import LogLoading
from simulator.disk import SimDisk
from simulator.random import SimRandom
from tests.node.api.other_nodes import OTHER_ID, beat, register
from tests.node.conftest import SimulatedNode, joined
from tests.node.test_node import produce, values_of

M = TypeVar("M", bound=Message)
MakeNode = Callable[..., SimulatedNode]
STARTING = [NodeState.CATCHING_UP, NodeState.RECOVERING, NodeState.REGISTERING, NodeState.FENCED]


def used_disk(make_node: MakeNode, *, cleanly: bool) -> SimDisk:
    """The disk of a node with two records in each of two partitions."""
    node = make_node().start()
    node.create_topic("t", partitions=2)
    assert [produce(node, "t"), produce(node, "t")] == [0, 0]
    return node.stop() if cleanly else node.disk.kill()


def started_to(node: SimulatedNode, state: NodeState) -> SimulatedNode:
    """Begins the start and lets it run until the node is in this state."""
    node.node.start()
    node.clock.run_until(lambda: node.node.progress.state is state)
    return node


def ask(node: SimulatedNode, listener: str) -> Pending[EncodedResponse]:
    reply = node.dispatch(ConnectionInfo(1, listener, "client:1"), node.frame(ApiVersionsRequest(), 0))
    if isinstance(reply, Pending):
        return reply
    answered: Pending[EncodedResponse] = Pending()
    answered.complete(reply)
    return answered


def test_a_start_goes_through_every_state(make_node: MakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[NodeState] = []
    enter = NodeProgress.enter

    def watched(progress: NodeProgress, state: NodeState) -> None:
        seen.append(state)
        enter(progress, state)

    disk = used_disk(make_node, cleanly=False)
    monkeypatch.setattr(NodeProgress, "enter", watched)
    make_node(disk, seed=2).start()
    assert seen == [*STARTING, NodeState.SERVING]


@pytest.mark.parametrize("state", STARTING)
def test_the_controller_listener_answers_while_the_broker_side_starts(make_node: MakeNode, state: NodeState) -> None:
    node = started_to(make_node(used_disk(make_node, cleanly=False), seed=2), state)
    assert ask(node, "CONTROLLER").done
    waiting = ask(node, "PLAINTEXT")
    assert not waiting.done
    node.clock.run_until(lambda: node.node.ready.done)
    assert waiting.done
    assert node.node.progress.state is NodeState.SERVING


def test_the_controller_listener_answers_between_the_jobs_that_recover_logs(
    make_node: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.storage.directory.log_loading._LOGS_PER_JOB", 1)
    node = started_to(make_node(used_disk(make_node, cleanly=False), seed=2), NodeState.RECOVERING)
    (directory,) = node.node.partitions.directories()
    for count in range(2):
        node.clock.run_until(lambda count=count: len(directory.logs) == count)  # type: ignore[misc]
        assert node.node.progress.state is NodeState.RECOVERING
        assert ask(node, "CONTROLLER").done


@pytest.mark.parametrize("cleanly", [True, False])
@pytest.mark.parametrize("state", STARTING)
def test_a_stop_in_the_middle_of_a_start_loses_nothing(make_node: MakeNode, state: NodeState, cleanly: bool) -> None:
    second = started_to(make_node(used_disk(make_node, cleanly=cleanly), seed=2), state)
    disk = second.stop()
    assert second.node.progress.state is NodeState.STOPPED
    assert second.failures == []
    third = make_node(disk.crash(SimRandom(3)) if cleanly else disk, seed=3).start()
    assert values_of(third, "t") == [b"v", b"v"]
    assert produce(third, "t") == 0


@pytest.mark.parametrize("state", [NodeState.CATCHING_UP, NodeState.RECOVERING, NodeState.REGISTERING])
def test_a_stop_before_partitions_are_known_leaves_their_high_watermarks(make_node: MakeNode, state: NodeState) -> None:
    disk = used_disk(make_node, cleanly=True)
    path = f"/data/{checkpoints.HIGH_WATERMARKS}"
    before = checkpoints.read_offsets(disk, path)
    assert before["t", 0] == 2
    second = started_to(make_node(disk, seed=2), state)
    assert checkpoints.read_offsets(second.stop(), path) == before


@pytest.mark.parametrize("state", STARTING)
def test_a_crash_in_the_middle_of_a_start_loses_nothing(make_node: MakeNode, state: NodeState) -> None:
    second = started_to(make_node(used_disk(make_node, cleanly=False), seed=2), state)
    third = make_node(second.disk.kill(), seed=3).start()
    assert values_of(third, "t") == [b"v", b"v"]


def test_no_partition_is_led_before_the_image_has_this_runs_registration(make_node: MakeNode) -> None:
    """A node that restarts after a power loss must not lead in the epoch in which its log was longer."""
    second = make_node(used_disk(make_node, cleanly=False), seed=2)
    started_to(second, NodeState.REGISTERING)
    assert len(second.node.partitions) == 0
    second.clock.run_until(lambda: second.node.ready.done)
    partition = second.node.partitions.leader("t", None, 0)
    epochs = [epoch for epoch, _ in partition.log.epochs.entries]
    assert epochs == [0, partition.leader_epoch], "the epoch before the crash is not assigned again"


def test_an_unexpected_error_while_logs_are_loaded_ends_the_node(
    make_node: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("a defect")

    node = make_node(used_disk(make_node, cleanly=False), seed=2)
    monkeypatch.setattr("quire.storage.directory.log_opener.LogOpener.open", broken)
    node.node.start()
    node.clock.run_until(lambda: bool(node.failures))
    assert node.failures == ["the node cannot start: ValueError('a defect')"]


# --- Requests on the controller listener while the broker side starts


def on_controller(node: SimulatedNode, request: Message, version: int, expected: type[M]) -> M:
    answer: Pending[bytes | None] = Pending()
    reply = node.dispatch(ConnectionInfo(9, "CONTROLLER", "client:9"), node.frame(request, version))
    if isinstance(reply, Pending):
        reply.when_done(lambda parts: answer.complete(joined(parts)))
    else:
        answer.complete(joined(reply))
    node.clock.run_until(lambda: answer.done)
    body = answer.value
    key = request.API_KEY
    assert body is not None and key is not None
    header = 5 if apis.response_header_version(key, version) else 4
    return codec.decode(expected, body[header:], version)


def folders_of(node: SimulatedNode, topic: str) -> list[str]:
    return [name for name in node.disk.list_dir("/data") if name.startswith(f"{topic}-")]


@pytest.mark.parametrize("state", [NodeState.RECOVERING, NodeState.REGISTERING])
def test_a_topic_that_is_deleted_during_the_start_leaves_no_stray_log(make_node: MakeNode, state: NodeState) -> None:
    node = started_to(make_node(used_disk(make_node, cleanly=False), seed=2), state)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")])
    assert on_controller(node, request, 6, DeleteTopicsResponse).responses[0].error_code == 0
    node.clock.run_until(lambda: node.node.ready.done)
    node.clock.run_for(120_000)
    assert folders_of(node, "t") == []


def test_a_topic_that_is_created_during_the_start_is_served_beside_a_new_directory(
    make_node: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log is in no directory, but this does not mean that a disk is not mounted."""
    disk = used_disk(make_node, cleanly=False)
    prepare_use = LogDirectory.prepare_use
    go_on: list[Callable[[], None]] = []
    monkeypatch.setattr(
        LogDirectory, "prepare_use", lambda directory, then: go_on.append(lambda: prepare_use(directory, then))
    )
    node = started_to(make_node(disk, {"log.dirs": "/data,/other"}, seed=2), NodeState.RECOVERING)
    assert not beat(node, register(node)).is_fenced, "another broker leads meanwhile"
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=[OTHER_ID, node.node.node_id])
    topic = CreatableTopic(name="new", num_partitions=-1, replication_factor=-1, assignments=[assignment])
    created = on_controller(node, CreateTopicsRequest(topics=[topic]), 7, CreateTopicsResponse).topics[0]
    assert created.error_code == 0
    assert node.node.progress.state is NodeState.RECOVERING
    for prepare in go_on:
        prepare()
    node.clock.run_until(lambda: node.node.ready.done)
    assert isinstance(node.node.partitions.readable("new", None, 0), FollowerRole)


@pytest.mark.parametrize("state", [NodeState.RECOVERING, NodeState.REGISTERING, NodeState.FENCED, NodeState.SERVING])
def test_dynamic_broker_settings_hold_from_the_moment_they_are_replayed(make_node: MakeNode, state: NodeState) -> None:
    first = make_node(used_disk(make_node, cleanly=True), seed=5).start()
    setting = AlterableConfig(name="message.max.bytes", config_operation=0, value="777777")
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[setting])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    assert first.call(request, 1, IncrementalAlterConfigsResponse).responses[0].error_code == 0
    node = started_to(make_node(first.disk.kill(), seed=2), state)
    assert node.node.config.get_int("message.max.bytes") == 777777


def test_a_node_that_recovers_for_long_is_fenced_by_its_own_controller(
    make_node: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other brokers could lead its partitions meanwhile."""
    node = make_node(used_disk(make_node, cleanly=False), seed=2)
    monkeypatch.setattr(LogLoading, "_take", lambda *_: None)  # The job never ends.
    started_to(node, NodeState.RECOVERING)
    node.clock.run_for(30_000)
    assert node.node.progress.state is NodeState.RECOVERING
    assert node.node.image.brokers[1].fenced


def test_a_node_that_fails_while_it_recovers_opens_no_further_log(
    make_node: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.storage.directory.log_loading._LOGS_PER_JOB", 1)
    node = started_to(make_node(used_disk(make_node, cleanly=False), seed=2), NodeState.RECOVERING)
    node.node.fail("for another reason")
    node.clock.run_for(10_000)
    (directory,) = node.node.partitions.directories()
    assert len(directory.unopened) == 2
    assert node.failures == ["for another reason"]


@pytest.mark.parametrize(("request_type", "is_kept"), [(ApiVersionsRequest, False), (CreateTopicsRequest, True)])
def test_a_held_request_of_a_disconnected_client_is_kept_only_if_it_changes_something(
    make_node: MakeNode, request_type: type[Message], is_kept: bool
) -> None:
    node = started_to(make_node(used_disk(make_node, cleanly=False), seed=2), NodeState.REGISTERING)
    version = 7 if is_kept else 0
    reply = node.dispatch(ConnectionInfo(1, "PLAINTEXT", "client:1"), node.frame(request_type(), version))
    assert isinstance(reply, Pending)
    assert (reply.on_abandoned is None) == is_kept, "the network abandons only what says so"
    reply.abandon()
    assert len(node.dispatch._held["PLAINTEXT"]) == is_kept
