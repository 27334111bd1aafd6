"""A node killed with -9 in the middle of rebalances and commits: groups recover, and no acknowledged offset is lost."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from quire.protocol.errors import ErrorCode
from quire.testing import Cluster, WireConnection
from tests.crash.committing_member import PROTOCOLS, CommittingMember, Members, assert_no_commit_is_lost, kept, promised
from tests.crash.record_load import create_topic
from tests.wire.broker_settings import SETTINGS
from tests.wire.clients import Confluent, Message, eventually
from tests.wire.group_members import wait_until_shared_out
from tests.wire.raw_groups import has_coordinator, heartbeat, stable_alone, state_of
from tests.wire.raw_offsets import commit

TOPIC, GROUP = "shared", "group"
PARTITIONS = 12
PER_PARTITION = 300
KILLS = 3


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(config=SETTINGS | {"group.consumer.session.timeout.ms": 20_000}) as running:
        create_topic(running.bootstrap_servers, TOPIC, PARTITIONS)
        for partition in range(PARTITIONS):
            messages = [Message(b"%d" % number) for number in range(PER_PARTITION)]
            Confluent().produce(running.bootstrap_servers, TOPIC, messages, partition=partition)
        yield running


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_recovers_from_kills_in_the_middle_of_rebalances_and_commits(cluster: Cluster, protocol: str) -> None:
    kill_between_rebalances(cluster, KILLS, PROTOCOLS[protocol])


@pytest.mark.soak
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_recovers_from_many_kills(cluster: Cluster, protocol: str) -> None:
    kill_between_rebalances(cluster, 10 * KILLS, PROTOCOLS[protocol])


def kill_between_rebalances(cluster: Cluster, kills: int, settings: dict[str, Any]) -> None:
    bootstrap = cluster.bootstrap_servers
    with Members(bootstrap, GROUP, TOPIC, settings) as group:
        members = [group.join() for _ in range(3)]
        wait_until_shared_out(members, TOPIC, PARTITIONS)
        for number in range(kills):
            in_the_middle_of_a_rebalance = partial(has_heard_more, members[0], len(members[0].events))
            if number % 2:
                members.pop().close()
            else:
                members.append(group.join())
            eventually(in_the_middle_of_a_rebalance)
            cluster.kill()
            before = promised(group.everyone)
            cluster.restart()
            after = kept(bootstrap, GROUP, before)
            assert all(after[partition] >= offset for partition, offset in before.items()), (before, after)
            wait_until_shared_out(members, TOPIC, PARTITIONS)
        eventually(lambda: everything_is_read(group.everyone))
        assert_no_commit_is_lost(bootstrap, GROUP, group.everyone)
    assert "Traceback" not in cluster.log()


def has_heard_more(member: CommittingMember, events: int) -> bool:
    return len(member.events) > events


def everything_is_read(members: list[CommittingMember]) -> bool:
    return len({(got.partition, got.offset) for each in members for got in list(each.received)}) == (
        PARTITIONS * PER_PARTITION
    )


def test_commits_acknowledged_just_before_the_kill_survive(cluster: Cluster) -> None:
    """Offsets and the members of a stable group survive: the members continue in their generation."""
    bootstrap = cluster.bootstrap_servers
    groups: dict[str, str] = {}
    for number in range(KILLS):
        with WireConnection(bootstrap) as connection:
            eventually(partial(has_coordinator, connection))
            for each in range(5):
                group = f"group-{number}-{each}"
                groups[group] = stable_alone(connection, group).member_id
                done = commit(connection, group, TOPIC, each, member_id=groups[group], generation_id=1)
                assert done == ErrorCode.NONE
        cluster.kill()
        cluster.restart()
        found = {group: kept(bootstrap, group, [(TOPIC, 0)])[TOPIC, 0] for group in groups}
        assert found == {group: int(group[-1]) for group in groups}
        with WireConnection(bootstrap) as connection:
            for group, member_id in groups.items():
                assert state_of(connection, group) == "Stable"
                assert heartbeat(connection, group, member_id, 1) == ErrorCode.NONE
