"""An exactly-once copy, while its copier and its node are killed with -9: every record is copied once.

The copier is the one of examples/, started again by a supervisor as any service would be.
"""

from collections.abc import Collection, Iterator
from functools import partial

import pytest

from quire.testing import Cluster, WireConnection
from tests.crash.record_load import create_topic
from tests.crash.verdict import Verdict, repeated
from tests.wire.broker_settings import SETTINGS
from tests.wire.clients import Confluent, Message, eventually
from tests.wire.raw import list_offset
from tests.wire.readers import read_confluent
from tests.wire.running_example import RunningExample

SOURCE, SINK = "source", "sink"
PARTITIONS = 4
RECORDS = 50_000
KILLS = 3
"""The number of kills of the copier, and of the node."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(config=SETTINGS) as running:
        for topic in (SOURCE, SINK):
            create_topic(running.bootstrap_servers, topic, PARTITIONS)
        for partition in range(PARTITIONS):
            messages = [Message(b"record %d" % number) for number in range(partition, RECORDS, PARTITIONS)]
            Confluent().produce(running.bootstrap_servers, SOURCE, messages, partition=partition)
        yield running


class Supervisor:
    """Keeps one copier running."""

    def __init__(self, bootstrap: str) -> None:
        options = ("--name", "copier", "--bootstrap-servers", bootstrap)
        self._bootstrap = bootstrap
        self._start = partial(RunningExample, "exactly_once_copy.py", SOURCE, SINK, *options)
        self._copier = self._start()
        self.restarts = 0

    def kill(self) -> None:
        self._copier.kill()
        self._restart()

    def has_copied(self, count: int) -> bool:
        """Also restarts the copier if it has given up because the node was gone."""
        if self._copier.has_ended():
            self._restart()
        with WireConnection(self._bootstrap) as connection:
            ends = [
                list_offset(connection, SINK, -1, partition=number, isolation_level=1).offset
                for number in range(PARTITIONS)
            ]
        return sum(ends) >= count

    def stop(self) -> None:
        self._copier.kill()

    def _restart(self) -> None:
        self._copier.kill()
        self._copier = self._start()
        self.restarts += 1


def test_every_record_is_copied_once(cluster: Cluster) -> None:
    copy_with_kills(cluster, KILLS)


@pytest.mark.soak
def test_every_record_is_copied_once_through_many_kills(cluster: Cluster) -> None:
    copy_with_kills(cluster, 10 * KILLS)


def copy_with_kills(cluster: Cluster, kills: int) -> None:
    bootstrap = cluster.bootstrap_servers
    supervisor = Supervisor(bootstrap)
    try:
        for number in range(2 * kills):
            eventually(partial(supervisor.has_copied, RECORDS * number // (2 * kills) + 1))
            if number % 2:
                cluster.kill()
                cluster.restart()
            else:
                supervisor.kill()
        eventually(partial(supervisor.has_copied, RECORDS))
        eventually(lambda: len(copied(bootstrap)) >= RECORDS)
        assert_copied_once(copied(bootstrap), RECORDS)
    finally:
        supervisor.stop()
    assert supervisor.restarts >= kills
    assert "Traceback" not in cluster.log()


def assert_copied_once(copies: Collection[bytes], records: int) -> None:
    """If copies of an aborted transaction could be read, they would be duplicates, because the copier repeats them."""
    expected = {b"RECORD %d" % number for number in range(records)}
    assert expected.issuperset(copies), "a copy of something that is not in the source"
    Verdict(acknowledged=records, lost=len(expected.difference(copies)), duplicated=repeated(copies)).assert_clean()


def copied(bootstrap: str) -> list[bytes]:
    return [value for number in range(PARTITIONS) for value in read_confluent(bootstrap, SINK, partition=number)]
