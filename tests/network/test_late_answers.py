"""Writes that wait only to be answered: the next ones are handled meanwhile, and the answers stay in order."""

import logging

import pytest

from quire.network.handler import CloseConnection
from quire.network.late_answers import LATE_MAX
from tests.network.memory import MemoryTransport, frame, frames_in
from tests.network.server_world import MB, ServerWorld


def sent(world: ServerWorld, *requests: bytes) -> MemoryTransport:
    client = world.client()
    client.send(b"".join(map(frame, requests)))
    return client


def test_writes_in_a_row_are_handled_while_the_first_waits_and_answered_in_order() -> None:
    world = ServerWorld()
    client = sent(world, b"echo...1", b"late...2", b"late...3", b"late...4")
    assert world.handled == [b"echo...1", b"late...2", b"late...3", b"late...4"]
    assert frames_in(client.taken) == [b"echo...1"]
    for place in (1, 1):  # the third and the fourth request, before the second
        text, pending = world.parked.pop(place)
        pending.complete([frame(text)])
        assert frames_in(client.taken) == [b"echo...1"]
    world.complete()
    assert frames_in(client.taken) == [b"echo...1", b"late...2", b"late...3", b"late...4"]


def test_a_write_that_arrives_while_another_one_waits_is_handled_at_once() -> None:
    world = ServerWorld()
    client = sent(world, b"late...1")
    client.send(frame(b"late...2"))
    assert world.handled == [b"late...1", b"late...2"]


@pytest.mark.parametrize("other", [b"echo...2", b"park...2", b"silent.2"])
def test_another_request_waits_for_the_answers_of_the_writes_before_it(other: bytes) -> None:
    world = ServerWorld()
    client = sent(world, b"late...1", other, b"late...3")
    client.send(frame(b"late...4"))
    assert world.handled == [b"late...1"]
    assert client.unread_bytes == len(frame(b"late...4"))
    world.complete()
    world.settle()
    assert world.handled[:2] == [b"late...1", other]
    while world.parked:
        world.complete()
        world.settle()
    answered = [text for text in (b"late...1", other, b"late...3", b"late...4") if not text.startswith(b"silent")]
    assert frames_in(client.taken) == answered


def test_a_write_that_has_to_wait_before_it_is_done_holds_up_the_next_one() -> None:
    """Its records must come before those of the next one."""
    world = ServerWorld()
    client = sent(world, b"late...1", b"latepk.2", b"late...3")
    assert world.handled == [b"late...1", b"latepk.2"]
    text, parked = world.parked.pop(1)
    parked.complete([frame(text)])
    world.settle()
    assert world.handled == [b"late...1", b"latepk.2", b"late...3"]
    assert frames_in(client.taken) == []
    world.complete()
    world.complete()
    assert frames_in(client.taken) == [b"late...1", b"latepk.2", b"late...3"]


def test_a_write_that_is_answered_at_once_stays_in_order() -> None:
    """Because it was refused."""
    world = ServerWorld()
    client = sent(world, b"late...1", b"late-no2", b"late...3")
    assert world.handled == [b"late...1", b"late-no2", b"late...3"]
    assert frames_in(client.taken) == []
    world.complete()
    assert frames_in(client.taken) == [b"late...1", b"late-no2"]
    world.complete()
    assert frames_in(client.taken) == [b"late...1", b"late-no2", b"late...3"]


def test_only_a_few_writes_of_a_connection_wait_at_a_time() -> None:
    world = ServerWorld()
    requests = [b"late..%02d" % number for number in range(3 * LATE_MAX)]
    client = sent(world, *requests)
    for done in range(len(requests)):
        assert world.handled == requests[: done + LATE_MAX]
        world.complete()
        world.settle()
    assert frames_in(client.taken) == requests


def test_a_write_that_completes_an_earlier_one_keeps_the_order() -> None:
    """On a leader, an append may move the high watermark past the records of the request before."""
    world = ServerWorld()
    client = sent(world, b"echo...1", b"late...2", b"lets...3", b"lets...4", b"echo...5")
    assert world.handled == [b"echo...1", b"late...2", b"lets...3", b"lets...4"]
    assert frames_in(client.taken) == [b"echo...1", b"late...2", b"lets...3"]
    world.complete()
    world.settle()
    assert frames_in(client.taken) == [b"echo...1", b"late...2", b"lets...3", b"lets...4", b"echo...5"]


def test_large_writes_in_a_row_are_handled_while_the_first_waits() -> None:
    world = ServerWorld()
    requests = [b"late...%d" % number + bytes(MB) for number in range(4)]
    client = sent(world, *requests)
    world.settle()
    assert world.handled == requests
    while world.parked:
        world.complete()
    assert frames_in(client.taken) == requests


def test_late_answers_end_when_the_client_disconnects() -> None:
    world = ServerWorld()
    client = sent(world, b"late...1", b"late...2", b"echo...3")
    told: list[bytes] = []
    for text, pending in world.parked:
        pending.on_abandoned = lambda text=text: told.append(text)
    client.hang_up()
    world.settle()
    assert told == [b"late...1", b"late...2"]
    assert world.handled == [b"late...1", b"late...2", b"echo...3"]
    assert world.server.counters.connections == 0


def test_a_connection_with_late_answers_is_not_idle() -> None:
    world = ServerWorld()
    world.limits.idle_ms_max = 1000
    client = sent(world, b"late...1")
    world.clock.run_for(5000)
    assert not client.ended
    world.complete()
    assert frames_in(client.taken) == [b"late...1"]


def test_a_stop_waits_for_late_answers_and_handles_nothing_else() -> None:
    world = ServerWorld()
    client = sent(world, b"late...1", b"late...2", b"echo...3")
    stops: list[bool] = []
    world.server.stop(60_000, lambda: stops.append(True))
    for _ in range(2):
        assert not client.ended and not stops
        world.complete()
        world.settle()
    assert frames_in(client.taken) == [b"late...1", b"late...2"]
    assert client.ended and stops


def test_a_write_that_closes_the_connection_lets_earlier_answers_arrive(caplog: pytest.LogCaptureFixture) -> None:
    world = ServerWorld()
    client = sent(world, b"late...1", b"late...2", b"late...3")
    world.parked[1][1].complete(CloseConnection("the request said so"))
    world.parked[2][1].complete([frame(b"late...3")])
    with caplog.at_level(logging.WARNING):
        world.complete()
    world.settle()
    assert frames_in(client.taken) == [b"late...1"]
    assert client.ended
    assert "the request said so" in caplog.text
