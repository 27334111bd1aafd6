"""The active controller acts on closed connections, refusals, silence and stalls of its own."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.unregister_broker import UnregisterBrokerRequest
from quire.seams import Receiver, Transport
from tests.controller.sim_controller import NODE_ID, SimController, sender

SESSION_MS = 9_000
INTERVAL_MS = 2_000


@pytest.fixture
def sim() -> SimController:
    return SimController().start()


def join(sim: SimController, broker_id: int, **fields: object) -> int:
    """Another broker, unfenced. Its listener is on the controller's own host, where nothing listens unless told."""
    epoch = sim.register(broker_id, **fields)
    assert not sim.heartbeat(broker_id, epoch).is_fenced
    return epoch


def listen(sim: SimController) -> None:
    def refuse_later(_transport: Transport) -> Receiver | None:
        return None

    sim.network.host("node").listen("localhost", 9092, refuse_later)


def is_fenced(sim: SimController, broker_id: int) -> bool:
    return sim.image.brokers[broker_id].fenced


def register_again(sim: SimController, broker_id: int, **fields: object) -> ErrorCode:
    """A new incarnation."""
    request = sim.registration(broker_id, **fields)
    return ErrorCode(sim.settle(sim.controller.register_broker(request, sender(broker_id))).error_code)


# --- Processes that have ended


def test_a_broker_whose_listener_refuses_is_fenced_at_once(sim: SimController) -> None:
    join(sim, 2)
    sim.close_connection(2)
    sim.run(10)
    assert is_fenced(sim, 2)


def test_a_broker_whose_listener_accepts_keeps_its_session(sim: SimController) -> None:
    listen(sim)
    join(sim, 2)
    sim.close_connection(2)
    sim.run(SESSION_MS - 500)
    assert not is_fenced(sim, 2)
    sim.run(1_000)
    assert is_fenced(sim, 2)


def test_a_broker_that_cannot_be_reached_keeps_its_session(sim: SimController) -> None:
    sim.network.cut("node", "node")
    join(sim, 2)
    sim.close_connection(2)
    sim.run(SESSION_MS - 500)
    assert not is_fenced(sim, 2)
    sim.run(1_000)
    assert is_fenced(sim, 2)


def test_a_heartbeat_before_the_refusal_saves_the_broker(sim: SimController) -> None:
    epoch = join(sim, 2)
    sim.close_connection(2)
    sim.heartbeat(2, epoch)
    assert not is_fenced(sim, 2)


def test_a_broker_that_was_fenced_by_mistake_is_unfenced_by_its_next_heartbeat(sim: SimController) -> None:
    epoch = join(sim, 2)
    sim.create("t", partitions=4)
    led = [index for index, each in sim.image.topics_by_name["t"].partitions.items() if each.leader == 2]
    before = {index: sim.image.topics_by_name["t"].partitions[index].leader_epoch for index in led}
    sim.close_connection(2)
    sim.run(10)
    assert {sim.image.topics_by_name["t"].partitions[index].leader for index in led} == {-1}
    assert not sim.heartbeat(2, epoch).is_fenced
    for index in led:
        partition = sim.image.topics_by_name["t"].partitions[index]
        assert (partition.leader, partition.leader_epoch) == (2, before[index] + 2)


def test_a_broker_that_left_cleanly_is_not_a_failure(sim: SimController, caplog: pytest.LogCaptureFixture) -> None:
    epoch = join(sim, 2)
    sim.heartbeat(2, epoch, want_shut_down=True)
    sim.heartbeat()
    assert sim.heartbeat(2, epoch, want_shut_down=True).should_shut_down
    offset = sim.image.offset
    sim.close_connection(2)
    sim.run(500)
    assert sim.image.offset == offset and "is gone" not in caplog.text


def test_a_second_broker_waits_for_its_session_if_a_partition_would_have_no_leader(sim: SimController) -> None:
    for broker_id in (2, 3):
        join(sim, broker_id)
    sim.create("t", partitions=6)
    sim.close_connection(2)
    sim.close_connection(3)
    sim.run(500)
    assert (is_fenced(sim, 2), is_fenced(sim, 3)) == (True, False)
    sim.run(SESSION_MS)
    assert is_fenced(sim, 3)


def test_a_second_broker_without_partitions_is_fenced_at_once(sim: SimController) -> None:
    for broker_id in (2, 3):
        join(sim, broker_id)
    sim.close_connection(2)
    sim.close_connection(3)
    sim.run(500)
    assert is_fenced(sim, 2) and is_fenced(sim, 3)


def restarted(sim: SimController) -> SimController:
    """The node was killed, and its new process leads the quorum while it recovers its logs."""
    again = SimController(sim.disk.kill(), seed=2)
    listen(again)
    return again.open()


def test_a_node_that_restarts_and_leads_at_once_fences_its_own_earlier_incarnation(sim: SimController) -> None:
    listen(sim)
    join(sim, 2)
    sim.create("t", partitions=4, replication_factor=2)
    again = restarted(sim)
    assert (is_fenced(again, NODE_ID), is_fenced(again, 2)) == (True, False)
    partitions = again.image.topics_by_name["t"].partitions.values()
    assert {(each.leader, each.isr) for each in partitions} == {(2, (2,))}
    again.register()
    assert not again.heartbeat().is_fenced


def test_a_term_that_begins_while_the_broker_in_this_process_runs_does_not_fence_it(sim: SimController) -> None:
    epoch = sim.image.brokers[NODE_ID].epoch
    sim.replica.leader_changed(None, 2)
    sim.replica.leader_changed(NODE_ID, 3)
    sim.run(60_000)
    broker = sim.image.brokers[NODE_ID]
    assert (broker.epoch, broker.is_active) == (epoch, True)


def test_refusals_in_two_terms_take_only_one_broker_out(sim: SimController) -> None:
    for broker_id in (2, 3):
        join(sim, broker_id)
    sim.create("t", partitions=6, replication_factor=2)
    sim.close_connection(2)
    sim.run(10)
    sim.replica.leader_changed(None, 2)
    sim.replica.leader_changed(NODE_ID, 3)
    sim.run(500)
    assert (is_fenced(sim, 2), is_fenced(sim, 3)) == (True, False), "all replicas of some partitions are on both"
    sim.run(SESSION_MS)
    assert is_fenced(sim, 3)


# --- A broker that is unregistered


def unregister(sim: SimController, broker_id: int) -> ErrorCode:
    request = UnregisterBrokerRequest(broker_id=broker_id)
    return ErrorCode(sim.settle(sim.controller.unregister_broker(request)).error_code)


def test_a_broker_that_could_not_be_unregistered_is_still_watched(
    sim: SimController, monkeypatch: pytest.MonkeyPatch
) -> None:
    listen(sim)
    join(sim, 2)
    with monkeypatch.context() as full_disk:
        full_disk.setattr(type(sim.replica.log), "waits_for_room", property(lambda _: True))
        assert unregister(sim, 2) is ErrorCode.KAFKA_STORAGE_ERROR
    assert not is_fenced(sim, 2)
    sim.run(SESSION_MS + 500)
    assert is_fenced(sim, 2)


# --- A new incarnation


def test_a_new_incarnation_replaces_one_that_lost_its_connection(sim: SimController) -> None:
    listen(sim)
    join(sim, 2, log_dirs=[b"d" * 16])
    sim.close_connection(2)
    assert register_again(sim, 2, log_dirs=[b"d" * 16]) is ErrorCode.NONE


def test_a_new_incarnation_waits_while_the_connection_of_the_old_one_is_open(sim: SimController) -> None:
    join(sim, 2, log_dirs=[b"d" * 16])
    assert register_again(sim, 2, log_dirs=[b"d" * 16]) is ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_a_broker_with_other_directories_is_another_broker_and_waits(sim: SimController) -> None:
    listen(sim)
    join(sim, 2, log_dirs=[b"d" * 16])
    sim.close_connection(2)
    assert register_again(sim, 2, log_dirs=[b"e" * 16]) is ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_a_broker_that_restarts_may_have_other_directories(sim: SimController) -> None:
    join(sim, 2, log_dirs=[b"d" * 16])
    sim.close_connection(2)
    sim.run(10)
    assert register_again(sim, 2, log_dirs=[b"e" * 16]) is ErrorCode.NONE


# --- A controller that was paused


def test_a_controller_that_was_frozen_gives_every_broker_a_new_session(sim: SimController) -> None:
    listen(sim)
    epochs = {broker_id: join(sim, broker_id) for broker_id in (2, 3)}
    sim.freeze(20_000)
    sim.run(SESSION_MS - 500)
    assert not is_fenced(sim, 2) and not is_fenced(sim, 3)
    sim.heartbeat(2, epochs[2])
    sim.run(1_000)
    assert (is_fenced(sim, 2), is_fenced(sim, 3)) == (False, True)


def test_a_short_delay_gives_no_new_session(sim: SimController) -> None:
    listen(sim)
    join(sim, 2)
    sim.freeze(INTERVAL_MS / 4)
    sim.run(SESSION_MS - 1_000)
    assert not is_fenced(sim, 2)
    sim.run(1_000)
    assert is_fenced(sim, 2)
