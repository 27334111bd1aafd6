"""Thirty consumers join and leave under load: everything is read, no partition has two owners, and the group
settles.
"""

import itertools
import random
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import confluent_kafka
import pytest

from quire.testing import Cluster, WireConnection
from tests.crash.committing_member import PROTOCOLS, CommittingMember, Members, assert_no_commit_is_lost
from tests.crash.record_load import create_topic
from tests.wire.broker_settings import SETTINGS
from tests.wire.clients import WAIT_S, eventually
from tests.wire.group_members import wait_until_shared_out
from tests.wire.raw import list_offset

TOPIC, GROUP = "busy", "thirty"
PARTITIONS = 60
CONSUMERS = 30
CHANGES = 20
SEED = 30
SESSION_MS = 60_000
HEARTBEAT_MS = 500
"""Long enough for a busy machine: librdkafka abandons a slow heartbeat, and is fenced with the next one."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    patient = {
        "group.consumer.session.timeout.ms": SESSION_MS,
        "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
    }
    with Cluster(config=SETTINGS | patient) as running:
        create_topic(running.bootstrap_servers, TOPIC, PARTITIONS)
        yield running


class Load:
    """Writes small records to all partitions in turn, a few thousand a second, until it is stopped."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(WAIT_S)

    def stop(self) -> None:
        self.close()
        assert self._producer.flush(WAIT_S) == 0

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(0.02):
            for _ in range(PARTITIONS):
                self._producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS)
                number += 1
            self._producer.poll(0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_thirty_consumers_join_and_leave_under_load(cluster: Cluster, protocol: str) -> None:
    come_and_go(cluster, CHANGES, PROTOCOLS[protocol])


@pytest.mark.soak
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_thirty_consumers_join_and_leave_for_a_long_time(cluster: Cluster, protocol: str) -> None:
    come_and_go(cluster, 20 * CHANGES, PROTOCOLS[protocol])


def come_and_go(cluster: Cluster, changes: int, settings: dict[str, Any]) -> None:
    bootstrap = cluster.bootstrap_servers
    chance = random.Random(SEED)
    with Members(bootstrap, GROUP, TOPIC, settings) as group, closing(Load(bootstrap)) as load:
        members = [group.join() for _ in range(CONSUMERS)]
        wait_until_shared_out(members, TOPIC, PARTITIONS)
        for _ in range(changes):
            leaver = members.pop(chance.randrange(len(members)))
            if settings.get("group.protocol") == "consumer":
                wait_until_it_knows_that_it_has_joined(leaver)
            leaver.close()
            members.append(group.join())
        wait_until_shared_out(members, TOPIC, PARTITIONS)
        load.stop()
        ends = end_offsets(bootstrap)
        wait_until_read(group.everyone, {(p, offset) for p, end in ends.items() for offset in range(end)})
        assert_no_commit_is_lost(bootstrap, GROUP, group.everyone)
    assert_one_owner_at_a_time(group.everyone)
    assert "Traceback" not in cluster.log()


def wait_until_it_knows_that_it_has_joined(member: CommittingMember) -> None:
    """librdkafka does not leave the group while its join is pending: such a member is removed only when its session
    expires."""
    eventually(lambda: bool(member.events))


def end_offsets(bootstrap: str) -> dict[int, int]:
    with WireConnection(bootstrap) as connection:
        return {number: list_offset(connection, TOPIC, -1, partition=number).offset for number in range(PARTITIONS)}


def wait_until_read(members: list[CommittingMember], wanted: set[tuple[int, int]]) -> None:
    """Waits as long as they make progress: on a busy machine, many rebalances leave much to catch up with."""

    def count() -> int:
        return sum(len(each.received) for each in members)

    while missing := wanted - read(members):
        enough = count() + max(1, len(missing) // 10)
        eventually(lambda enough=enough: count() >= enough)  # type: ignore[misc]
    assert read(members) == wanted


def read(members: list[CommittingMember]) -> set[tuple[int, int]]:
    return {(got.partition, got.offset) for each in members for got in list(each.received)}


def assert_one_owner_at_a_time(members: list[CommittingMember]) -> None:
    owned = sorted(each for member in members for each in member.owned)
    assert len(owned) >= PARTITIONS
    for earlier, later in itertools.pairwise(owned):
        assert earlier.topic_partition != later.topic_partition or earlier.end_s <= later.start_s, (earlier, later)
