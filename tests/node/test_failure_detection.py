"""Brokers that end, and networks that make a broker look ended, on three simulated nodes."""

import pytest

from quire.node.node import Node
from quire.node.node_state import NodeState
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from quire.storage.directory.log_directory import LogDirectory
from simulator.random import SimRandom
from tests.node.sim_nodes import BOTH, SimNodes

SESSION_MS = 9_000
INTERVAL_MS = 2_000
FAST_MS = 500
IDS = (1, 2, 3)


@pytest.fixture
def nodes() -> SimNodes:
    return started(SimNodes())


def started(nodes: SimNodes) -> SimNodes:
    nodes.start()
    brokers = [id_ for id_, role in nodes.roles.items() if "broker" in role]
    nodes.create_topic(brokers[0], "t", leaders=brokers)
    nodes.until(lambda: all(each.image.topic("t") is not None and not fenced(each) for each in nodes.nodes.values()))
    return nodes


def fenced(node: Node) -> list[int]:
    return [each.broker_id for each in node.image.brokers_sorted() if each.fenced]


def leader(nodes: SimNodes) -> int:
    nodes.until(lambda: nodes.leader_id is not None)
    assert nodes.leader_id is not None
    return nodes.leader_id


class Fences:
    """Which brokers are seen fenced on a node at any moment."""

    def __init__(self, node: Node) -> None:
        self.seen: set[int] = set()
        node.metadata.loader.subscribe(lambda image, _delta: self.seen.update(fenced(node)))


class Leaderships:
    """Who serves as the leader of each partition and epoch; never two."""

    def __init__(self, nodes: SimNodes) -> None:
        self._nodes = nodes
        self._leaders: dict[tuple[int, int], int] = {}

    def check(self) -> bool:
        for node_id, node in self._nodes.nodes.items():
            for partition in node.partitions:
                if partition.leader is not None:
                    key = partition.index, partition.leader_epoch
                    assert self._leaders.setdefault(key, node_id) == node_id, f"two leaders of {key}"
        return False


# --- Processes that end


def test_a_broker_that_is_killed_is_fenced_long_before_its_session_ends(nodes: SimNodes) -> None:
    controller = leader(nodes)
    gone = nodes.others(controller)[0]
    nodes.kill(gone)
    nodes.until(lambda: fenced(nodes.nodes[controller]) == [gone], FAST_MS)


def test_a_new_active_controller_fences_the_broker_that_ended_with_the_last_one(nodes: SimNodes) -> None:
    old = leader(nodes)
    nodes.kill(old)
    new = leader(nodes)
    nodes.until(lambda: fenced(nodes.nodes[new]) == [old], FAST_MS)


def test_a_broker_that_is_killed_right_after_a_change_of_controller_is_noticed() -> None:
    nodes = SimNodes((BOTH, BOTH, BOTH, "broker"), broker_heartbeat_interval_ms="8000").start()
    old = leader(nodes)
    nodes.until(lambda: fenced(nodes.nodes[old]) == [])
    nodes.clock.run_for(100)
    nodes.kill(old)
    new = leader(nodes)
    nodes.until(lambda: fenced(nodes.nodes[new]) == [old], FAST_MS)
    nodes.clock.run_for(500)
    nodes.kill(4)
    nodes.until(lambda: fenced(nodes.nodes[new]) == [old, 4], FAST_MS)


@pytest.mark.parametrize("is_controller", [True, False])
def test_a_broker_that_is_killed_and_restarted_at_once_does_not_wait_for_a_session(
    nodes: SimNodes, is_controller: bool
) -> None:
    controller = leader(nodes)
    again = controller if is_controller else nodes.others(controller)[0]
    nodes.kill(again)
    killed_ms = nodes.clock.monotonic_ms()
    nodes.restart(again)
    assert nodes.clock.monotonic_ms() - killed_ms < INTERVAL_MS + 2_000


def test_a_node_that_leads_the_quorum_before_its_logs_are_open_leads_no_partition_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = started(SimNodes((BOTH, "broker")))
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2])
    topic = CreatableTopic(name="two", num_partitions=-1, replication_factor=-1, assignments=[assignment])
    created = nodes.ask(1, CreateTopicsRequest(topics=[topic], timeout_ms=20_000), CreateTopicsResponse)
    assert created.topics[0].error_code == ErrorCode.NONE
    nodes.kill(1)
    monkeypatch.setattr(LogDirectory, "load_logs", lambda *_: None)
    nodes.begin(1)
    nodes.until(lambda: nodes.leader_id == 1)
    nodes.until(lambda: nodes.nodes[1].image.topics_by_name["two"].partitions[0].leader == 2, FAST_MS)
    assert nodes.nodes[1].progress.state is NodeState.RECOVERING and fenced(nodes.nodes[1]) == [1]


def test_a_clean_stop_is_not_a_failure(nodes: SimNodes, caplog: pytest.LogCaptureFixture) -> None:
    controller = leader(nodes)
    nodes.stop(nodes.others(controller)[0])
    nodes.clock.run_for(1_000)
    assert "broker fenced" not in caplog.text


def test_a_second_broker_that_is_killed_waits_for_its_session_if_its_partitions_have_no_other_leader() -> None:
    nodes = started(SimNodes((BOTH, "broker", "broker")))
    assert leader(nodes) == 1
    for gone in (2, 3):
        nodes.kill(gone)
    nodes.until(lambda: len(fenced(nodes.nodes[1])) == 1, FAST_MS)
    nodes.clock.run_for(SESSION_MS - INTERVAL_MS - 1_000)
    assert len(fenced(nodes.nodes[1])) == 1
    nodes.until(lambda: fenced(nodes.nodes[1]) == [2, 3], 4_000)


# --- False refusals, and slow processes


def test_connections_that_break_for_no_reason_fence_no_broker(nodes: SimNodes) -> None:
    controller = leader(nodes)
    fences = Fences(nodes.nodes[controller])
    for _ in range(20):
        for other in nodes.others(controller):
            nodes.network.break_connections(f"node{controller}", f"node{other}")
        nodes.clock.run_for(500)
    assert fences.seen == set()


def test_a_broker_behind_a_false_refusal_is_fenced_and_returns(nodes: SimNodes) -> None:
    controller = leader(nodes)
    other = nodes.others(controller)[0]
    leaderships = Leaderships(nodes)
    nodes.network.refuse("lie", [(f"node{controller}", f"node{other}")])
    nodes.network.break_connections(f"node{controller}", f"node{other}")
    asked = nodes.nodes[controller]
    nodes.until(lambda: leaderships.check() or fenced(asked) == [other], FAST_MS)
    nodes.until(lambda: leaderships.check() or fenced(asked) == [], 2 * INTERVAL_MS)
    nodes.until(lambda: leaderships.check() or asked.image.topics_by_name["t"].partitions[other - 1].leader == other)


def test_a_controller_that_is_refused_everywhere_takes_only_one_broker_out() -> None:
    nodes = started(SimNodes((BOTH, "broker", "broker")))
    fences = Fences(nodes.nodes[1])
    nodes.network.refuse("lie", [("node1", "node2"), ("node1", "node3")])
    for _ in range(4):
        nodes.network.break_connections("node1")
        nodes.clock.run_for(INTERVAL_MS)
    assert len(fences.seen) == 1


def test_a_broker_that_is_cut_off_keeps_its_session(nodes: SimNodes) -> None:
    controller = leader(nodes)
    other = nodes.others(controller)[0]
    nodes.network.break_connections(f"node{controller}", f"node{other}")
    nodes.network.cut(f"node{controller}", f"node{other}")
    nodes.clock.run_for(SESSION_MS - INTERVAL_MS - 500)
    assert fenced(nodes.nodes[controller]) == []
    nodes.until(lambda: fenced(nodes.nodes[controller]) == [other], 4_000)


def test_a_paused_broker_keeps_its_session(nodes: SimNodes) -> None:
    controller = leader(nodes)
    other = nodes.others(controller)[0]
    nodes.process(other).pause()
    nodes.network.break_connections(f"node{controller}", f"node{other}")
    nodes.clock.run_for(SESSION_MS - INTERVAL_MS - 500)
    assert fenced(nodes.nodes[controller]) == []
    nodes.until(lambda: fenced(nodes.nodes[controller]) == [other], 4_000)


@pytest.mark.parametrize("paused_ms", [3_000, 20_000])
def test_a_controller_that_was_paused_fences_no_broker(paused_ms: int) -> None:
    nodes = started(SimNodes(("controller", "broker", "broker")))
    fences = Fences(nodes.nodes[1])
    nodes.process(1).pause()
    nodes.clock.run_for(paused_ms)
    nodes.process(1).resume()
    nodes.clock.run_for(2 * SESSION_MS)
    assert fences.seen == set()


@pytest.mark.parametrize("seed", range(4))
def test_no_epoch_has_two_leaders_and_all_brokers_return_for_any_timing(seed: int) -> None:
    nodes = started(SimNodes(seed=seed))
    random = SimRandom(seed).stream("mischief")
    leaderships = Leaderships(nodes)

    def run(duration_ms: float) -> None:
        until_ms = nodes.clock.monotonic_ms() + duration_ms
        nodes.until(lambda: leaderships.check() or nodes.clock.monotonic_ms() >= until_ms)

    for number in range(30):
        node, other = (f"node{1 + random.below(3)}" for _ in range(2))
        if random.chance(0.4):
            nodes.network.refuse(f"lie {number % 3}", [(node, other), (other, node)])
        if random.chance(0.4):
            nodes.network.stop_refusing(f"lie {random.below(3)}")
        nodes.network.break_connections(node)
        if random.chance(0.2):
            gone = 1 + random.below(3)
            nodes.kill(gone)
            nodes.begin(gone)
        run(random.between(1, 1_500))
    nodes.network.stop_refusing()
    nodes.until(lambda: leaderships.check() or all(fenced(each) == [] for each in nodes.nodes.values()))
    leaders = [
        [each.leader for each in node.image.topics_by_name["t"].partitions.values()] for node in nodes.nodes.values()
    ]
    assert leaders == [list(IDS)] * 3
