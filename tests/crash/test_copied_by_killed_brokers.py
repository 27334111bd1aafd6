"""An exactly-once copy while brokers and the copier are killed: every record is copied once."""

from functools import partial

import pytest

from quire.testing import Cluster
from tests.crash.real_cluster import wait_until
from tests.crash.replicated_cluster import create_replicated, replicated_cluster, wait_until_in_sync
from tests.crash.test_exactly_once_killed import Supervisor, assert_copied_once
from tests.crash.verdict import COMMITTED, ends, read_all, read_settled
from tests.wire.clients import Confluent, Message

SOURCE, SINK = "source", "sink"
PARTITIONS = 4
RECORDS = 8_000
KILLS = 2
"""The number of kills of the copier, and of brokers."""


class ReplicatedSupervisor(Supervisor):
    def has_copied(self, count: int) -> bool:
        """Also counts the ends of transactions, which have offsets too."""
        if self._copier.has_ended():
            self._restart()
        return sum(ends(self._bootstrap, SINK, COMMITTED)) >= count

    def has_copied_all(self, records: int) -> bool:
        return self.has_copied(records) and len(read_all(self._bootstrap, SINK)) >= records


def test_every_record_is_copied_once_while_brokers_are_killed() -> None:
    with replicated_cluster() as cluster:
        copy_with_kills(cluster, RECORDS, KILLS)


@pytest.mark.soak
def test_every_record_is_copied_once_while_many_brokers_are_killed() -> None:
    with replicated_cluster() as cluster:
        copy_with_kills(cluster, 10 * RECORDS, 10 * KILLS)


def copy_with_kills(cluster: Cluster, records: int, kills: int) -> None:
    bootstrap = cluster.bootstrap_servers
    for topic in (SOURCE, SINK):
        create_replicated(bootstrap, topic, PARTITIONS)
    for partition in range(PARTITIONS):
        messages = [Message(b"record %d" % number) for number in range(partition, records, PARTITIONS)]
        Confluent().produce(bootstrap, SOURCE, messages, partition=partition)
    supervisor = ReplicatedSupervisor(bootstrap)
    try:
        for number in range(2 * kills):
            copied = partial(supervisor.has_copied, records * number // (2 * kills) + 1)
            wait_until(copied, "the copier makes no progress")
            if number % 2:
                node = cluster.leader_of(SINK, number % PARTITIONS)
                cluster.kill(node)
                wait_until(partial(supervisor.has_copied, records * number // (2 * kills) + 2), "no progress")
                cluster.restart(node)
                wait_until_in_sync(bootstrap, SINK)
            else:
                supervisor.kill()
        wait_until(partial(supervisor.has_copied_all, records), "not everything is copied")
        assert_copied_once(read_settled(bootstrap, SINK).values(), records)
    finally:
        supervisor.stop()
