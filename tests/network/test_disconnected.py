"""Requests that arrived before their client disconnected are handled in order; an incomplete request holds nothing."""

import pytest

from quire.network.limits import Limits
from quire.network.turns import DISCONNECTED_MAX
from tests.network.memory import frame
from tests.network.server_world import MB, ServerWorld


def test_earlier_requests_of_a_disconnected_client_are_handled_in_order_without_responses() -> None:
    world = ServerWorld()
    client = world.client()
    client.send(frame(b"park...1") + frame(b"park...2") + frame(b"echo...3") + frame(b"echo...4")[:-1])
    client.hang_up()
    world.settle()
    assert world.handled == [b"park...1"]
    world.complete()
    world.settle()
    assert world.handled == [b"park...1", b"park...2"]
    assert world.server.counters.connections == 1
    world.complete()
    world.settle()
    assert world.handled == [b"park...1", b"park...2", b"echo...3"]
    assert client.taken == b""
    assert world.server.counters.connections == 0
    assert world.server.counters.bytes_out == 0


def test_requests_of_a_disconnected_client_are_handled_one_at_a_time() -> None:
    world = ServerWorld()
    client = world.client()
    sent = [b"park..%02d" % number + bytes(6000) for number in range(20)]
    client.send(b"".join(map(frame, sent)))
    client.finish()
    for number in range(1, 21):
        world.settle()
        assert world.handled == sent[:number]
        world.complete()
    world.settle()
    assert world.server.counters.connections == 0


def test_a_request_that_waits_only_for_its_response_does_not_delay_later_requests_of_a_disconnected_client() -> None:
    world = ServerWorld()
    client = world.client()
    client.send(frame(b"park...1") + frame(b"silent.2"))
    told: list[str] = []
    world.parked[0][1].on_abandoned = lambda: told.append("gone")
    client.hang_up()
    world.settle()
    assert told == ["gone"]
    assert world.handled == [b"park...1", b"silent.2"]
    assert world.server.counters.connections == 0


def test_half_a_request_of_a_disconnected_client_is_not_kept() -> None:
    world = ServerWorld()
    client = world.client()
    client.send(frame(b"park...1") + frame(b"echo" + b"." * MB)[: MB // 2])
    client.hang_up()
    world.settle()
    assert world.server.counters.connections == 0
    assert world.server.pool.in_use_bytes == 0
    world.complete()
    assert world.handled == [b"park...1"]


def test_an_endless_request_keeps_a_disconnected_client_no_longer_than_the_idle_timeout() -> None:
    world = ServerWorld(Limits(idle_ms_max=1000))
    client = world.client()
    client.send(frame(b"park...1") + frame(b"echo...2"))
    client.hang_up()
    world.clock.run_for(900)
    assert world.server.counters.connections == 1
    world.clock.run_for(1000)
    assert world.server.counters.connections == 0
    world.complete()
    world.settle()
    assert world.handled == [b"park...1"]


@pytest.mark.parametrize("last", [frame(b"bug....2"), frame(b"close..2"), b"\xff" * 100])
def test_a_request_that_ends_the_connection_drops_later_requests_of_a_disconnected_client(last: bytes) -> None:
    world = ServerWorld()
    client = world.client()
    client.send(frame(b"park...1") + last + frame(b"echo...3"))
    client.hang_up()
    world.settle()
    world.complete()
    world.settle()
    assert b"echo...3" not in world.handled
    assert world.server.counters.connections == 0


@pytest.mark.parametrize("finishes", [True, False])
def test_a_server_that_stops_waits_for_the_request_in_progress_of_a_disconnected_client(finishes: bool) -> None:
    world = ServerWorld()
    client = world.client()
    client.send(frame(b"park...1") + frame(b"echo...2"))
    client.hang_up()
    world.settle()
    stopped: list[bool] = []
    world.server.stop(1000, lambda: stopped.append(True))
    world.settle()
    assert stopped == []
    if finishes:
        world.complete()
        assert stopped == [], "completing a request must not end everything before the caller returns"
    world.clock.run_for(0 if finishes else 1000)
    assert stopped == [True]
    assert world.handled == [b"park...1"]


def test_requests_that_wait_for_a_disconnected_client_are_notified() -> None:
    world = ServerWorld()
    client = world.client()
    client.send(frame(b"park...1"))
    told: list[str] = []
    world.parked[0][1].on_abandoned = lambda: told.append("gone")
    client.hang_up()
    world.settle()
    assert told == ["gone"]


def test_earlier_requests_of_a_client_that_disconnects_before_its_turn_are_served() -> None:
    world = ServerWorld()
    client, other = world.client(), world.client()
    client.send(frame(b"silent.1") * 1000)
    client.hang_up()
    other.send(frame(b"echo..other"))
    assert len(world.handled) < 100
    world.settle()
    assert world.handled.count(b"silent.1") == 1000
    assert world.server.counters.connections == 1


def test_all_requests_of_a_client_that_disconnects_with_bytes_unread_are_handled() -> None:
    world = ServerWorld()
    client = world.client()
    client.send(frame(b"park...1"))
    told: list[str] = []
    world.parked[0][1].on_abandoned = lambda: told.append("gone")
    client.send(frame(b"silent.2") + frame(b"silent.3")[:-1])
    assert client.unread_bytes > 0
    client.finish()
    world.settle()
    assert told == ["gone"]
    assert world.handled == [b"park...1", b"silent.2"]
    assert world.server.counters.connections == 0


def test_a_client_that_disconnects_with_bytes_unread_waits_for_the_request_in_progress() -> None:
    world = ServerWorld()
    client = world.client()
    client.send(frame(b"park...1"))
    client.send(frame(b"echo...2"))
    client.finish()
    world.settle()
    assert world.handled == [b"park...1"]
    assert world.server.counters.connections == 1
    world.complete()
    world.settle()
    assert world.handled == [b"park...1", b"echo...2"]
    assert client.taken == b""
    assert world.server.counters.connections == 0


def test_a_client_that_closes_with_half_a_large_request_unread_is_released() -> None:
    world = ServerWorld(Limits(request_memory_bytes_max=MB))
    holders = [world.client() for _ in range(3)]
    for holder in holders:
        holder.send(frame(b"echo" + b"." * MB)[: MB // 2])
    client = world.client()
    client.send(frame(b"echo" + b"." * MB)[: MB // 2])
    assert client.paused
    client.finish()
    for holder in holders:
        holder.finish()
    world.settle()
    assert world.handled == []
    assert world.server.counters.connections == 0
    assert world.server.pool.in_use_bytes == 0


def test_requests_that_change_nothing_are_not_handled_for_a_disconnected_client() -> None:
    world = ServerWorld()
    world.server.matters = lambda request: bytes(request[:6]) == b"silent"
    client = world.client()
    client.send(frame(b"park...1") + frame(b"slow...2") * 500 + frame(b"silent.3") + frame(b"slow...4"))
    client.hang_up()
    world.settle()
    world.complete()
    world.settle()
    assert world.handled == [b"park...1", b"silent.3"]
    assert world.server.counters.connections == 0


def test_disconnected_clients_delay_others_by_one_request_per_round() -> None:
    world = ServerWorld()
    gone = [world.client() for _ in range(50)]
    for client in gone:
        client.send(frame(b"slow...1") * 40)
        client.hang_up()
    living, single = world.client(), world.client()
    world.clock.step()
    living.send(frame(b"echo...2") * 300)
    began_ms = world.host_clock.monotonic_ms()
    while world.handled.count(b"echo...2") < 300:
        world.clock.step()
        round_ms = world.host_clock.monotonic_ms()
        single.send(frame(b"echo...3"))
        assert world.host_clock.monotonic_ms() == round_ms
    assert world.host_clock.monotonic_ms() - began_ms <= 100
    assert world.server.counters.connections > 40
    world.settle()
    assert world.handled.count(b"slow...1") == 50 * 40
    assert world.server.counters.connections == 2


def test_the_number_of_disconnected_clients_served_is_limited() -> None:
    world = ServerWorld()
    clients = [world.client() for _ in range(DISCONNECTED_MAX + 50)]
    for client in clients:
        client.send(frame(b"park...1") + frame(b"silent.2"))
    for _, pending in world.parked:
        pending.on_abandoned = lambda: None
    for client in clients:
        client.hang_up()
    world.settle()
    assert world.handled.count(b"silent.2") == DISCONNECTED_MAX
    assert world.server.counters.connections == 0
