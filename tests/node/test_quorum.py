"""Three nodes agree: they elect a controller, replicate the metadata log, and survive the loss of one."""

import logging

import pytest

from quire.controller.metadata_replica import HAND_OVER_MS
from quire.node.quorum_progress import HIGH_WATERMARK
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from quire.protocol.messages.metadata_records import ConfigRecord
from tests.node.sim_cluster import SimCluster

NEW_TOPIC = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])


def started(settings: dict[str, str] | None = None) -> SimCluster:
    cluster = SimCluster(3, settings=settings).start()
    cluster.until(lambda: len(cluster.active) == 1)
    return cluster


def write(cluster: SimCluster, value: str) -> None:
    (leader,) = cluster.active
    log = cluster[leader].metadata.log
    record = ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value=value)
    log.append([(record, 0)], cluster.clock.now_ms())


def setting(cluster: SimCluster, node_id: int) -> str | None:
    return cluster[node_id].image.broker_configs(None).get("log.retention.ms")


def test_three_nodes_elect_one_controller_and_all_follow_it() -> None:
    cluster = started()
    (leader,) = cluster.active
    cluster.until(lambda: all(cluster[node_id].metadata.log.leader_id == leader for node_id in (1, 2, 3)))
    assert {cluster[node_id].metadata.log.epoch for node_id in (1, 2, 3)} == {1}
    follower = cluster[leader % 3 + 1]
    assert follower.metadata.leader_endpoint() == (leader, f"node-{leader}", 9093)


def test_records_of_the_controller_reach_every_node() -> None:
    cluster = started()
    write(cluster, "1000")
    cluster.until(lambda: all(setting(cluster, node_id) == "1000" for node_id in (1, 2, 3)))


def test_the_others_elect_a_controller_when_theirs_is_cut_off_and_it_resigns() -> None:
    cluster = started()
    (old,) = cluster.active
    others = [node_id for node_id in (1, 2, 3) if node_id != old]
    for other in others:
        cluster.network.cut(f"node-{old}", f"node-{other}")
    cluster.until(lambda: any(node_id in cluster.active for node_id in others) and old not in cluster.active)
    write(cluster, "2000")
    cluster.network.heal()
    cluster.until(lambda: all(setting(cluster, node_id) == "2000" for node_id in (1, 2, 3)))
    assert cluster[old].metadata.log.epoch == max(cluster[node_id].metadata.log.epoch for node_id in others)


def test_a_controller_that_stops_hands_over_what_it_has_written() -> None:
    cluster = started()
    (old,) = cluster.active
    cluster.until(lambda: any(broker.is_active for broker in cluster[old].image.brokers.values()))
    active = cluster[old].metadata.active
    assert active is not None
    written = active.create_topics(NEW_TOPIC)
    handed_over = cluster[old].metadata.hand_over()
    cluster.until(lambda: handed_over.done)
    assert written.value.topics[0].error_code == ErrorCode.NONE
    cluster.until(lambda: len(cluster.active) == 1)
    assert cluster.active != [old]


def test_a_controller_without_a_majority_hands_over_soon() -> None:
    cluster = started()
    (old,) = cluster.active
    cluster.until(lambda: any(broker.is_active for broker in cluster[old].image.brokers.values()))
    active = cluster[old].metadata.active
    assert active is not None
    for other in {1, 2, 3} - {old}:
        cluster.network.cut(f"node-{old}", f"node-{other}")
    written = active.create_topics(NEW_TOPIC)
    began_ms = cluster.clock.monotonic_ms()
    handed_over = cluster[old].metadata.hand_over()
    cluster.until(lambda: handed_over.done)
    assert cluster.clock.monotonic_ms() - began_ms == pytest.approx(HAND_OVER_MS, abs=1)
    assert written.value.topics[0].error_code == ErrorCode.NOT_CONTROLLER


def test_a_follower_that_was_away_too_long_gets_a_snapshot() -> None:
    cluster = started(
        {"metadata.log.max.record.bytes.between.snapshots": "500", "metadata.max.retention.bytes": "1000"}
    )
    (leader,) = cluster.active
    away = leader % 3 + 1
    for other in (1, 2, 3):
        if other != away:
            cluster.network.cut(f"node-{away}", f"node-{other}")
    log = cluster[leader].metadata.log
    behind = cluster[away].metadata.log.next_offset
    number = 0
    while log.start_offset <= behind:
        number += 1
        write(cluster, str(number))
        cluster.clock.run_for(50)
    cluster.network.heal()
    cluster.until(lambda: setting(cluster, away) == str(number))
    assert cluster[away].metadata.log.start_offset > behind
    assert cluster.members[away].failures == []


def test_a_leader_of_the_past_does_not_take_its_image_for_the_latest() -> None:
    cluster = started()
    (old,) = cluster.active
    others = [node_id for node_id in (1, 2, 3) if node_id != old]
    for other in others:
        cluster.network.cut(f"node-{old}", f"node-{other}")
    # The others notice at once, the old leader when no voter has fetched from it for a while.
    for other in others:
        cluster[other].metadata.log.lost(old, None, connection_lost=True)
    cluster.until(lambda: any(node_id in cluster.active for node_id in others))
    (new,) = (node_id for node_id in others if node_id in cluster.active)
    record = ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="2000")
    cluster[new].metadata.log.append([(record, 0)], cluster.clock.now_ms())
    cluster.until(lambda: setting(cluster, new) == "2000")
    assert old in cluster.active, "it still takes itself for the leader"
    up_to_date = cluster[old].to_controller.when_up_to_date(60_000)
    described = cluster[old].to_controller.describe_quorum(HIGH_WATERMARK)
    cluster.until(lambda: old not in cluster.active)
    assert not up_to_date.done and not described.done
    cluster.network.heal()
    cluster.until(lambda: up_to_date.done and described.done)
    assert setting(cluster, old) == "2000"
    assert described.value.topics[0].partitions[0].leader_id == new


def test_a_leader_with_a_majority_soon_knows_that_its_image_is_the_latest() -> None:
    cluster = started()
    (leader,) = cluster.active
    cluster.network.cut(f"node-{leader}", f"node-{leader % 3 + 1}")
    asked_ms = cluster.clock.monotonic_ms()
    up_to_date = cluster[leader].to_controller.when_up_to_date(60_000)
    cluster.until(lambda: up_to_date.done)
    assert up_to_date.value is True
    assert cluster.clock.monotonic_ms() - asked_ms < 100, "it waits for no fetch that is due later"


def test_a_controller_whose_disk_is_full_ends_its_term_when_the_others_elect_another() -> None:
    cluster = started()
    (old,) = cluster.active
    cluster.members[old].disk.capacity_bytes = 0
    write(cluster, "3000")
    cluster.until(lambda: cluster.active != [old] and old not in cluster.active)
    (new,) = cluster.active
    assert new != old
    cluster.until(lambda: cluster[old].metadata.log.leader_id == new)
    assert cluster.members[old].failures == []
    cluster.members[old].disk.capacity_bytes = None
    write(cluster, "4000")
    cluster.until(lambda: setting(cluster, old) == "4000")


def test_a_node_without_enough_controllers_says_what_it_waits_for(caplog: pytest.LogCaptureFixture) -> None:
    cluster = SimCluster(3)
    with caplog.at_level(logging.INFO, "quire.node"):
        cluster[1].start()
        cluster.until(lambda: "waiting for" in caplog.text, limit_ms=5_000)
        (said,) = [each for each in caplog.messages if "waiting for" in each]
        assert "no active controller is known; most of the controllers 1, 2, 3 must be up" in said
        assert "node-2:9093 is not reachable" in said
        cluster.until(lambda: "still waiting for" in caplog.text)
        cluster[2].start()
        cluster.until(lambda: cluster[1].ready.done)
    assert len([each for each in caplog.messages if "waiting for" in each]) == 2


def test_a_quorum_that_is_complete_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "quire.node"):
        cluster = started()
        cluster.until(lambda: all(cluster[node_id].ready.done for node_id in (1, 2, 3)))
        until_ms = cluster.clock.now_ms() + 40_000
        cluster.until(lambda: cluster.clock.now_ms() >= until_ms)
    assert "waiting for" not in caplog.text
