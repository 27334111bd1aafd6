"""Turns: a round of the loop is short, regardless of the number of waiting requests and connections."""

import pytest

from quire.network.turns import SLICE_MS, Turns
from simulator.clock import SimClock
from tests.network.memory import frame, frames_in
from tests.network.server_world import MB, ServerWorld


def test_a_client_that_sends_many_requests_at_once_lets_the_others_have_their_turn() -> None:
    world = ServerWorld()
    greedy, other = world.client(), world.client()
    requests = [b"echo%05d" % i for i in range(1000)]
    greedy.send(b"".join(map(frame, requests)))
    other.send(frame(b"echo..other"))
    assert len(frames_in(greedy.taken)) < 100
    assert frames_in(other.taken) == [b"echo..other"]
    world.settle()
    assert frames_in(greedy.taken) == requests
    assert not greedy.paused


def test_requests_of_several_receives_in_a_row_are_one_turn() -> None:
    world = ServerWorld()
    client = world.client()
    requests = [b"echo%05d" % i + b"." * 500 for i in range(1000)]
    client.send(b"".join(map(frame, requests)))
    assert len(world.handled) < 100
    world.settle()
    assert frames_in(client.taken) == requests


def test_a_turn_ends_with_many_bytes_of_answers_too() -> None:
    world = ServerWorld()
    client = world.client()
    # After a large request there is room for many smaller ones at once.
    client.send(frame(b"echo" + b"." * MB))
    world.settle()
    world.handled.clear()
    client.send(frame(b"echo" + b"." * 5000) * 100)
    assert len(world.handled) < 20
    world.settle()
    assert len(world.handled) == 100


def test_a_turn_ends_when_its_requests_have_taken_long() -> None:
    world = ServerWorld()
    slow, other = world.client(), world.client()
    requests = [b"slow..%05d" % i for i in range(30)]
    slow.send(b"".join(map(frame, requests)))
    other.send(frame(b"echo..other"))
    assert len(world.handled) <= 3
    assert frames_in(other.taken) == [b"echo..other"]
    world.settle()
    assert frames_in(slow.taken) == requests
    assert not slow.paused


def test_a_server_that_stops_gives_no_connection_another_turn() -> None:
    world = ServerWorld()
    client = world.client()
    client.send(frame(b"echo...1") * 1000)
    served = len(world.handled)
    world.server.stop(1000, lambda: None)
    world.settle()
    assert len(world.handled) == served
    assert len(frames_in(client.taken)) == served
    assert client.ended


def test_connections_with_many_requests_share_one_slice_per_round() -> None:
    world = ServerWorld()
    crowd = [world.client() for _ in range(100)]
    for client in crowd:
        client.send(frame(b"slow...1") * 5)
    assert len(world.handled) <= 2, "the requests of all of them share a slice"
    handled = len(world.handled)
    while handled < 500:
        world.clock.step()
        assert len(world.handled) - handled <= 2, "one slow request is longer than a slice"
        handled = len(world.handled)
    assert all(len(frames_in(client.taken)) == 5 for client in crowd)


def test_a_client_with_one_request_is_served_between_two_slices() -> None:
    world = ServerWorld()
    for _ in range(50):
        world.client().send(frame(b"slow...1") * 20)
    single = world.client()
    longest_ms = 0.0
    for i in range(20):
        began_ms = world.host_clock.monotonic_ms()
        world.clock.step()
        single.send(frame(b"echo...%d" % i))
        longest_ms = max(longest_ms, world.host_clock.monotonic_ms() - began_ms)
    assert len(frames_in(single.taken)) == 20
    assert longest_ms <= 2 * SLICE_MS + 10


def test_turns_are_first_come_first_served() -> None:
    world = ServerWorld()
    clients = [world.client() for _ in range(3)]
    for i, client in enumerate(clients):
        client.send(frame(b"slow...%d" % i) * 4)
    world.handled.clear()
    world.settle()
    assert [request[-1:] for request in world.handled] == [b"0", b"1", b"2"] * 3 + [b"1", b"2"]


class Waits:
    def __init__(self, error: Exception | None = None) -> None:
        self.turns = 0
        self._error = error

    def take_turn(self) -> None:
        self.turns += 1
        if self._error is not None:
            raise self._error

    take_turn_disconnected = take_turn


def test_a_turn_that_fails_does_not_stop_the_others() -> None:
    clock = SimClock()
    turns = Turns(clock)
    healthy, gone = Waits(), Waits()
    turns.wait(Waits(RuntimeError("a bug")))
    turns.wait(healthy)
    turns.wait_disconnected(gone)
    with pytest.raises(RuntimeError, match="a bug"):
        clock.step()
    clock.run_for(0)
    assert (healthy.turns, gone.turns) == (1, 1)
