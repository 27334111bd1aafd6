import gc
import pickle
import socket
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest
from pyspark.sql import Row, SparkSession

from pyspark_quire.spark_process import SentToTasks, acknowledge_at_once, find_connection, speed_up_this_process
from tests.spark.probe_source import ProbeSource

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system has no such setting")

MOST_TASKS = 20


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as one,
        server.accept()[0] as other,
    ):
        yield one, other


def acknowledges_at_once(end: socket.socket) -> bool:
    return end.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) != 0


def test_a_connection_is_set_to_acknowledge_and_to_send_at_once(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    one, other = ends
    while acknowledges_at_once(other):  # after some requests and responses the kernel begins to delay acknowledgements
        one.sendall(b"question")
        other.recv(100)
        other.sendall(b"answer")
        one.recv(100)
    acknowledge_at_once(other.fileno())
    assert acknowledges_at_once(other)
    assert other.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_connection_stays_open(ends: tuple[socket.socket, socket.socket]) -> None:
    one, other = ends
    acknowledge_at_once(other.fileno())
    other.sendall(b"still here")
    assert one.recv(100) == b"still here"


def test_a_connection_without_tcp_is_left_as_it_is() -> None:
    one, other = socket.socketpair(socket.AF_UNIX)
    with closing(one), closing(other):
        acknowledge_at_once(other.fileno())
        other.sendall(b"still here")
        assert one.recv(100) == b"still here"


def test_in_a_process_that_is_not_spark_s_nothing_is_done() -> None:
    before = gc.get_freeze_count()  # a node that ran in this process may have frozen objects
    assert find_connection() is None
    speed_up_this_process()
    speed_up_this_process()
    assert gc.get_freeze_count() == before


class Parcel(SentToTasks):
    def __init__(self, content: str) -> None:
        self.content = content


def test_data_sent_to_tasks_arrives_whole() -> None:
    assert pickle.loads(pickle.dumps(Parcel("rows"))).content == "rows"


def test_a_task_sends_at_once_and_from_the_second_on_the_modules_are_set_aside(spark: SparkSession) -> None:
    spark.dataSource.register(ProbeSource)
    found: list[Row] = []
    while not found or not found[-1].set_aside:
        assert len(found) < MOST_TASKS
        found += spark.read.format("quire-probe").load().collect()
    assert all(row.sends_at_once for row in found)
    assert found[-1].set_aside > 10_000
