"""Requests that arrived before their client disconnected are handled in order; an incomplete request holds nothing."""

import pytest

from quire.network.limits import Limits
from quire.network.turns import DISCONNECTED_MAX
from tests.network.memory import frame
from tests.network.test_connection import MB, World


def test_requests_that_had_come_are_handled_in_order_when_the_client_has_gone_and_their_answers_dropped() -> None:
    world = World()
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


def test_one_request_at_a_time_is_handled_of_what_comes_when_the_client_has_gone() -> None:
    world = World()
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
    world = World()
    client = world.client()
    client.send(frame(b"park...1") + frame(b"silent.2"))
    told: list[str] = []
    world.parked[0][1].on_abandoned = lambda: told.append("gone")
    client.hang_up()
    world.settle()
    assert told == ["gone"]
    assert world.handled == [b"park...1", b"silent.2"]
    assert world.server.counters.connections == 0


def test_half_a_request_of_a_client_that_has_gone_is_not_kept() -> None:
    world = World()
    client = world.client()
    client.send(frame(b"park...1") + frame(b"echo" + b"." * MB)[: MB // 2])
    client.hang_up()
    world.settle()
    assert world.server.counters.connections == 0
    assert world.server.pool.in_use_bytes == 0
    world.complete()
    assert world.handled == [b"park...1"]


def test_a_request_that_is_never_done_keeps_a_client_that_has_gone_no_longer_than_the_idle_time() -> None:
    world = World(Limits(idle_ms_max=1000))
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
def test_a_request_that_ends_a_connection_ends_what_a_client_said_before_it_went(last: bytes) -> None:
    world = World()
    client = world.client()
    client.send(frame(b"park...1") + last + frame(b"echo...3"))
    client.hang_up()
    world.settle()
    world.complete()
    world.settle()
    assert b"echo...3" not in world.handled
    assert world.server.counters.connections == 0


@pytest.mark.parametrize("finishes", [True, False])
def test_a_server_that_stops_waits_for_the_request_in_progress_of_a_client_that_has_gone(finishes: bool) -> None:
    world = World()
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
    world = World()
    client = world.client()
    client.send(frame(b"park...1"))
    told: list[str] = []
    world.parked[0][1].on_abandoned = lambda: told.append("gone")
    client.hang_up()
    world.settle()
    assert told == ["gone"]


def test_a_client_that_goes_before_its_next_turn_is_served_what_had_come_while_others_have_their_turns() -> None:
    world = World()
    client, other = world.client(), world.client()
    client.send(frame(b"silent.1") * 1000)
    client.hang_up()
    other.send(frame(b"echo..other"))
    assert len(world.handled) < 100
    world.settle()
    assert world.handled.count(b"silent.1") == 1000
    assert world.server.counters.connections == 1


def test_a_client_that_goes_with_bytes_unread_is_heard_to_the_end() -> None:
    world = World()
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


def test_a_client_that_goes_with_bytes_unread_waits_for_the_request_in_progress() -> None:
    world = World()
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
    world = World(Limits(request_memory_bytes_max=MB))
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


def test_requests_that_change_nothing_are_not_handled_for_a_client_that_has_gone() -> None:
    world = World()
    world.server.matters = lambda request: bytes(request[:6]) == b"silent"
    client = world.client()
    client.send(frame(b"park...1") + frame(b"slow...2") * 500 + frame(b"silent.3") + frame(b"slow...4"))
    client.hang_up()
    world.settle()
    world.complete()
    world.settle()
    assert world.handled == [b"park...1", b"silent.3"]
    assert world.server.counters.connections == 0


def test_clients_that_have_gone_hold_living_ones_up_for_one_request_per_round() -> None:
    world = World()
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


def test_only_so_many_clients_that_have_gone_are_heard() -> None:
    world = World()
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
