"""Connections: answers in order, one request at a time, bounds in both directions, no effect on others."""

import logging

import pytest

from quire.network.buffers import SMALL_BYTES
from quire.network.connection import Connection
from quire.network.limits import Limits
from quire.throttled_log import FEW, PERIOD_MS
from tests.network.memory import frame, frames_in
from tests.network.server_world import MB, ServerWorld


def test_a_request_is_answered() -> None:
    world = ServerWorld()
    client = world.client()
    client.send(frame(b"echo...1"))
    assert frames_in(client.taken) == [b"echo...1"]
    assert world.infos[0].listener == "PLAINTEXT"
    assert world.infos[0].peer == "10.0.0.1:5000"
    assert world.infos[0].host == "10.0.0.1"


def test_the_info_of_a_connection_is_the_same_object_for_all_its_requests() -> None:
    world = ServerWorld()
    one, other = world.client(), world.client()
    one.send(frame(b"echo...1") + frame(b"echo...2"))
    other.send(frame(b"echo...3"))
    assert world.infos[0] is world.infos[1]
    assert world.infos[0].connection_id != world.infos[2].connection_id


def test_requests_torn_at_every_byte_are_answered_once_each() -> None:
    data = frame(b"echo...1") + frame(b"echo....................2")
    for cut in range(len(data) + 1):
        world = ServerWorld()
        client = world.client()
        client.send(data[:cut])
        client.send(data[cut:])
        assert frames_in(client.taken) == [b"echo...1", b"echo....................2"]


def test_small_answers_to_requests_of_one_receive_are_one_write() -> None:
    world = ServerWorld()
    client = world.client()
    requests = [b"echo...%d" % i for i in range(50)]
    client.send(b"".join(map(frame, requests)))
    assert frames_in(client.taken) == requests
    assert client.writes == 1


def test_a_parked_request_holds_the_later_ones_back_and_answers_stay_in_order() -> None:
    world = ServerWorld()
    client = world.client()
    client.send(b"".join(map(frame, [b"echo...1", b"park...2", b"echo...3", b"park...4", b"echo...5"])))
    assert frames_in(client.taken) == [b"echo...1"]
    assert world.handled == [b"echo...1", b"park...2"]
    client.send(frame(b"echo...6"))
    assert client.unread_bytes == len(frame(b"echo...6"))
    world.complete()
    assert frames_in(client.taken) == [b"echo...1", b"park...2", b"echo...3"]
    world.complete()
    world.settle()
    assert frames_in(client.taken) == [b"echo...1", b"park...2", b"echo...3", b"park...4", b"echo...5", b"echo...6"]


def test_a_pending_that_is_done_already_is_an_answer() -> None:
    world = ServerWorld()
    client = world.client()
    client.send(frame(b"done...1") + frame(b"echo...2"))
    assert frames_in(client.taken) == [b"done...1", b"echo...2"]
    assert client.writes == 1


def test_a_parked_request_of_one_client_does_not_hold_another_back() -> None:
    world = ServerWorld()
    one, other = world.client(), world.client()
    one.send(frame(b"park...1"))
    other.send(frame(b"echo...2"))
    assert frames_in(other.taken) == [b"echo...2"]
    assert frames_in(one.taken) == []


def test_a_parked_connection_holds_no_buffer() -> None:
    world = ServerWorld()
    client = world.client()
    room = client.receiver.buffer()  # type: ignore[union-attr]
    client.send(frame(b"park...1"))
    assert world.server.pool.small() is room


def test_unused_memory_is_returned_after_a_while() -> None:
    world = ServerWorld(Limits(idle_ms_max=1000))
    client = world.client()
    world.settle()
    room = client.receiver.buffer()  # type: ignore[union-attr]
    world.clock.run_for(300)
    assert world.server.pool.small() is room
    client.send(frame(b"echo...1"))
    assert frames_in(client.taken) == [b"echo...1"]


def test_requests_without_an_answer_get_no_bytes() -> None:
    world = ServerWorld()
    client = world.client()
    client.send(frame(b"silent.1") + frame(b"silent.2"))
    assert client.writes == 0
    client.send(frame(b"echo...3"))
    assert frames_in(client.taken) == [b"echo...3"]


def test_a_handler_may_close_the_connection_and_earlier_answers_still_arrive(caplog: pytest.LogCaptureFixture) -> None:
    world = ServerWorld()
    client, other = world.client(), world.client()
    client.send(frame(b"echo...1") + frame(b"close..2") + frame(b"echo...3"))
    world.settle()
    assert frames_in(client.taken) == [b"echo...1"]
    assert len(client.closed_reasons) == 1
    assert [record.getMessage() for record in caplog.records] == [
        "closing the connection from 10.0.0.1:5000: the request said so"
    ]
    other.send(frame(b"echo...4"))
    assert frames_in(other.taken) == [b"echo...4"]


def test_a_bug_in_a_handler_costs_its_connection_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    world = ServerWorld()
    client, other = world.client(), world.client()
    client.send(frame(b"echo...1") + frame(b"bug....2"))
    world.settle()
    assert frames_in(client.taken) == [b"echo...1"]
    assert len(client.closed_reasons) == 1
    assert len(caplog.records) == 1
    assert caplog.records[0].exc_info is not None
    other.send(frame(b"echo...3"))
    assert frames_in(other.taken) == [b"echo...3"]


@pytest.mark.parametrize(
    "announced", [b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x7f\xff\xff\xff", b"GET / HTTP/1.1\r\n"]
)
def test_an_invalid_request_closes_the_connection_with_one_log_line(
    announced: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    world = ServerWorld()
    client = world.client()
    client.send(frame(b"echo...1") + announced)
    world.settle()
    assert frames_in(client.taken) == [b"echo...1"]
    assert len(client.closed_reasons) == 1
    assert len(caplog.records) == 1
    assert world.server.counters.connections == 0


def test_thousands_of_bad_connections_are_a_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    world = ServerWorld()
    for _ in range(1000):
        world.client().send(b"\xff" * 20)
        world.client().send(frame(b"close..1"))
        world.client().send(frame(b"bug....1"))
    world.settle()
    assert len(caplog.records) == 3 * FEW
    world.clock.run_for(PERIOD_MS)
    assert [record.getMessage().split(":")[0] for record in caplog.records[3 * FEW :]] == [
        "995 more lines like this were left out in the last minute"
    ] * 3


def test_a_client_that_does_not_read_is_not_read_and_not_buffered_for() -> None:
    world = ServerWorld(Limits(queued_bytes_pause=100_000))
    client = world.client(takes=0)
    for i in range(10):
        client.send(frame(b"big...%02d" % i))
    assert len(world.handled) == 1
    assert client.queued_bytes < 2 * MB
    assert client.unread_bytes > 0
    client.take(client.queued_bytes - 1)
    assert len(world.handled) == 1
    client.take()
    world.settle()
    assert len(world.handled) == 2
    while client.queued_bytes:
        client.take()
        world.settle()
    assert world.handled == [b"big...%02d" % i for i in range(10)]
    assert len(frames_in(client.taken)) == 20
    assert world.server.counters.queued_bytes == 0


def test_many_small_answers_that_are_not_read_are_bounded_too() -> None:
    world = ServerWorld(Limits(queued_bytes_pause=100_000))
    client = world.client(takes=0)
    request = frame(b"echo" + b"." * 1000)
    client.send(request * 1000)
    assert client.queued_bytes < 100_000 + 64 * 1024 + 2000
    while client.queued_bytes:
        client.take()
        world.settle()
    assert len(world.handled) == 1000


def test_a_client_that_never_reads_is_closed_when_it_has_been_idle_for_too_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = ServerWorld(Limits(idle_ms_max=1000))
    client = world.client(takes=0)
    client.send(frame(b"big....1") * 3)
    world.clock.run_for(990)
    assert not client.ended
    world.clock.run_for(20)
    assert client.closed_reasons == ["aborted"]
    assert len(caplog.records) == 1
    assert world.server.counters.queued_bytes == 0


def test_a_client_that_reads_slowly_is_not_closed() -> None:
    world = ServerWorld(Limits(idle_ms_max=1000))
    client = world.client(takes=0)
    client.send(frame(b"big....1") * 3)
    for _ in range(10):
        world.clock.run_for(900)
        client.take(1000)
        assert not client.ended


def test_half_a_request_and_silence_ends_with_the_idle_timeout(caplog: pytest.LogCaptureFixture) -> None:
    world = ServerWorld(Limits(idle_ms_max=1000))
    client = world.client()
    client.send(frame(b"echo...1")[:7])
    world.clock.run_for(999)
    assert not client.ended
    world.clock.run_for(2)
    assert client.closed_reasons == ["aborted"]
    assert len(caplog.records) == 1
    assert world.handled == []


def test_an_idle_client_is_closed_quietly_and_an_active_one_is_not(caplog: pytest.LogCaptureFixture) -> None:
    world = ServerWorld(Limits(idle_ms_max=1000))
    idle, active = world.client(), world.client()
    for _ in range(5):
        world.clock.run_for(700)
        active.send(frame(b"echo...1"))
    assert idle.closed_reasons == ["aborted"]
    assert not active.ended
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []


def test_without_a_limit_no_connection_is_idle_too_long_until_a_limit_is_set() -> None:
    world = ServerWorld(Limits(idle_ms_max=-1))
    client = world.client()
    world.clock.run_for(10_000_000)
    assert not client.ended
    world.limits.idle_ms_max = 1000
    world.clock.run_for(100_000)
    assert client.ended


def test_a_parked_request_is_not_idle() -> None:
    world = ServerWorld(Limits(idle_ms_max=1000))
    client = world.client()
    client.send(frame(b"park...1"))
    world.clock.run_for(5000)
    assert not client.ended
    world.complete()
    assert frames_in(client.taken) == [b"park...1"]
    world.clock.run_for(2000)
    assert client.ended


def test_when_all_queues_together_reach_the_limit_the_longest_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    world = ServerWorld(Limits(queued_bytes_max=7 * MB // 2, queued_bytes_pause=5 * MB))
    modest, hoarder, other = (world.client(takes=0) for _ in range(3))
    modest.send(frame(b"big....1"))
    hoarder.send(frame(b"big....1") * 2)
    world.settle()
    other.send(frame(b"big....1"))
    assert world.server.counters.queued_bytes < 5 * MB // 2
    world.settle()
    assert [client.ended for client in (modest, hoarder, other)] == [False, True, False]
    assert len(caplog.records) == 1
    for client in (modest, other):
        client.take()
        assert len(frames_in(client.taken)) == 2
    assert world.server.counters.queued_bytes == 0


def test_many_clients_that_do_not_read_are_not_all_checked_for_each_response(monkeypatch: pytest.MonkeyPatch) -> None:
    world = ServerWorld(Limits(queued_bytes_max=64 * MB))
    looked = 0
    count_queued = Connection.count_queued

    def counted(connection: Connection) -> int:
        nonlocal looked
        looked += 1
        return count_queued(connection)

    monkeypatch.setattr(Connection, "count_queued", counted)
    for _ in range(64):
        world.client(takes=0).send(frame(b"big....1"))
    for _ in range(64):
        world.client(takes=0).send(frame(b"big....1"))
        assert world.server.counters.queued_bytes <= 64 * MB
    assert looked < 64 * 64 / 4


def test_a_client_that_has_read_its_queue_is_not_taken_for_a_hoarder() -> None:
    world = ServerWorld(Limits(queued_bytes_max=7 * MB // 2, queued_bytes_pause=5 * MB))
    slow, other = world.client(takes=0), world.client(takes=0)
    slow.send(frame(b"big....1") * 3)
    world.settle()
    slow.take(3 * MB)
    other.send(frame(b"big....1"))
    world.settle()
    assert not slow.ended
    assert not other.ended


def test_a_client_that_reads_is_served_while_others_fill_their_queues() -> None:
    world = ServerWorld(Limits(queued_bytes_max=MB))
    fast = world.client()
    for i in range(5):
        world.client(takes=0).send(frame(b"big....1"))
        fast.send(frame(b"big....%d" % i))
        world.settle()
        assert len(frames_in(fast.taken)) == 2 * i + 2
        assert world.server.counters.queued_bytes <= MB


def test_large_requests_beyond_the_servers_memory_wait_and_are_all_served() -> None:
    world = ServerWorld(Limits(request_memory_bytes_max=MB))
    clients = [world.client() for _ in range(10)]
    request = frame(b"echo" + b"." * (MB // 2))
    for begin in range(0, len(request), 50_000):
        for client in clients:
            client.send(request[begin : begin + 50_000])
        assert world.server.pool.in_use_bytes < 3 * MB
    world.settle()
    assert len(world.handled) == 10
    assert all(bytes(client.taken) == request for client in clients)
    assert world.server.pool.in_use_bytes == 0


def test_a_client_that_leaves_while_it_waits_for_memory_blocks_no_other() -> None:
    world = ServerWorld(Limits(request_memory_bytes_max=MB))
    request = frame(b"echo" + b"." * 200_000)
    holders = [world.client() for _ in range(5)]
    for client in holders:
        client.send(request[:SMALL_BYTES])
    assert world.server.pool.in_use_bytes > MB
    waiting, behind = world.client(), world.client()
    for client in (waiting, behind):
        client.send(request)
    assert world.handled == []
    waiting.hang_up()
    holders[0].hang_up()
    world.settle()
    assert bytes(behind.taken) == request
    assert waiting.taken == b""


def test_counters_tell_requests_and_bytes() -> None:
    world = ServerWorld()
    client = world.client()
    client.send(frame(b"echo...1") * 3)
    counters = world.server.counters
    assert (counters.requests, counters.bytes_in, counters.bytes_out) == (3, 36, 36)
    assert (counters.connections, counters.connections_total) == (1, 1)
