"""`python -m benchmarks.groups`: the cost of groups: heartbeats, rebalances, and loading.

Goals: heartbeats of 1,000 groups of 3 members take at most 15 % of one core; a classic group of 100 members with 1,000
partitions completes its rebalance within 1 s of the last JoinGroup, and the target assignment of a consumer group of
that size is computed within 50 ms; a million committed offsets, of which 100,000 are live, load within 3 s and 120 MB.

Members are plain sockets that send a member's requests, one connection each. To the broker they look like that many
clients, but one process can run them all.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import loads
from benchmarks.brokers import Quire
from quire.coordinators.group.consumer.assignors import ASSIGNORS, AssignedMember
from quire.coordinators.group.consumer.assignors.turns import finish
from quire.coordinators.runtime.record import StateRecord, encode_key, encode_value
from quire.protocol.errors import ErrorCode
from quire.protocol.internal_topics import GROUP_OFFSETS
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from quire.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from quire.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from quire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from quire.protocol.records import Record, build_batch, read_header
from quire.protocol.records.batch import patch
from quire.real.disk import RealDisk
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.testing.wire_connection import WireConnection

JOIN, SYNC, HEARTBEAT, FIND, FETCH = 9, 5, 4, 6, 8
"""The versions of the requests."""
HEARTBEAT_INTERVAL_S = 3.0
SETTINGS = {"group.initial.rebalance.delay.ms": "1000", "offsets.topic.num.partitions": "1"}
COMMITS = 1_000_000
LIVE = 100_000
COMMITS_IN_A_BATCH = 50


class Member:
    """One member of a classic group, on a connection of its own."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self.group = group
        self.connection = WireConnection(bootstrap, timeout_s=60)
        self.member_id = ""
        self.generation = -1
        self.leads = False
        self.metadata = b""

    def ask_to_join(self) -> int:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=self.metadata)],
        )
        return self.connection.send(request, JOIN)

    def get_an_id(self) -> None:
        answer = self.connection.receive(JoinGroupResponse, JOIN, self.ask_to_join())
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED, answer
        self.member_id = answer.member_id

    def joined(self, sent: int) -> JoinGroupResponse:
        answer = self.connection.receive(JoinGroupResponse, JOIN, sent)
        assert answer.error_code == 0, answer
        self.generation = answer.generation_id
        self.leads = answer.leader == self.member_id
        return answer

    def ask_for_assignment(self, assignments: list[SyncGroupRequestAssignment]) -> int:
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        return self.connection.send(request, SYNC)

    def assigned(self, sent: int) -> None:
        answer = self.connection.receive(SyncGroupResponse, SYNC, sent)
        assert answer.error_code == 0, answer

    def ask_to_stay(self) -> int:
        request = HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member_id, group_instance_id=None
        )
        return self.connection.send(request, HEARTBEAT)

    def stays(self, sent: int) -> None:
        answer = self.connection.receive(HeartbeatResponse, HEARTBEAT, sent)
        assert answer.error_code == 0, answer


def join(members: list[Member]) -> list[int]:
    """Sends JoinGroup for all members. Their metadata changes each time, so the first one starts a rebalance."""
    for member in members:
        member.metadata += b"."
    return [member.ask_to_join() for member in members]


def settle(members: list[Member], joins: list[int], assignment_bytes: int) -> None:
    """Waits until all have joined and got their assignments."""
    for member, sent in zip(members, joins, strict=True):
        member.joined(sent)
    assert len({member.generation for member in members}) == 1, "not all are in one generation"
    shares = [
        SyncGroupRequestAssignment(member_id=member.member_id, assignment=bytes(assignment_bytes)) for member in members
    ]
    syncs = [member.ask_for_assignment(shares if member.leads else []) for member in members]
    for member, sent in zip(members, syncs, strict=True):
        member.assigned(sent)


def found(bootstrap: str, groups: list[str], members_each: int) -> list[list[Member]]:
    """Creates all groups at once: each waits a moment for its members."""
    founded = [[Member(bootstrap, group) for _ in range(members_each)] for group in groups]
    for members in founded:
        for member in members:
            member.get_an_id()
    for members, joins in [(members, join(members)) for members in founded]:
        settle(members, joins, 100)
    return founded


def find_coordinator(bootstrap: str) -> None:
    with WireConnection(bootstrap) as connection:
        answer = connection.call(FindCoordinatorRequest(coordinator_keys=["any"]), FIND, FindCoordinatorResponse)
        assert answer.coordinators[0].error_code == 0, answer


@contextmanager
def node(folder: Path) -> Iterator[Quire]:
    folder.mkdir()
    broker = Quire(folder, SETTINGS)
    broker.start()
    try:
        find_coordinator(broker.bootstrap)
        yield broker
    finally:
        broker.stop()


def heartbeats(folder: Path, groups: int, members_each: int, seconds: float) -> None:
    with node(folder) as broker:
        founded = found(broker.bootstrap, [f"group-{number}" for number in range(groups)], members_each)
        members = [member for group in founded for member in group]
        before, started, beats = broker.cpu(), time.perf_counter(), 0
        pause_s = HEARTBEAT_INTERVAL_S / len(members)
        while (now := time.perf_counter()) < started + seconds:
            member = members[beats % len(members)]
            member.stays(member.ask_to_stay())
            beats += 1
            time.sleep(max(0.0, started + beats * pause_s - now))
        took_s = time.perf_counter() - started
        share = broker.cpu().since(before).total_s / took_s
        print(
            f"| {groups} groups of {members_each} heartbeating, {beats / took_s:.0f} a second | {share:.1%} of a core |"
        )
        print(f"| memory with them | {broker.resident_bytes() / 1e6:.0f} MB |", flush=True)
        for member in members:
            member.connection.close()


def big_rebalance(folder: Path, members: int, partitions: int) -> None:
    with node(folder) as broker:
        loads.create_topic(broker.bootstrap, "big", partitions)
        (group,) = found(broker.bootstrap, ["big"], members)
        took_s = []
        for _ in range(3):
            joins = join(group)
            started = time.perf_counter()
            settle(group, joins, 8 * partitions // members + 20)
            took_s.append(time.perf_counter() - started)
        print(f"| classic rebalance, {members} members, {partitions} partitions | {max(took_s) * 1000:.0f} ms |")
        for member in group:
            member.connection.close()


def target(members: int, partitions: int) -> None:
    """The target assignment of a consumer group: at first, and after one more member has joined."""
    topic = bytes(16)
    for name, assign in ASSIGNORS.items():
        group = {f"member-{number:03d}": AssignedMember(frozenset([topic]), {}) for number in range(members)}
        started = time.perf_counter()
        assigned = finish(assign(group, {topic: partitions}))
        first_ms = (time.perf_counter() - started) * 1000
        group = {member: AssignedMember(frozenset([topic]), held) for member, held in assigned.items()}
        group["newcomer"] = AssignedMember(frozenset([topic]), {})
        started = time.perf_counter()
        finish(assign(group, {topic: partitions}))
        again_ms = (time.perf_counter() - started) * 1000
        what = f"{name} target, {members} members, {partitions} partitions: at first, and with one more"
        print(f"| {what} | {first_ms:.1f} ms, {again_ms:.1f} ms |", flush=True)


def write_commits(path: str, commits: int, live: int) -> None:
    """A partition of `__consumer_offsets` as it is before compaction: every offset committed again and again."""
    log = Log.open(RealDisk(), path, LogConfig(segment_bytes=100 << 20), clean=True, now_ms=0)
    records: list[Record] = []
    for number in range(commits):
        index = number * 7919 % live
        key = OffsetCommitKey(group=f"group-{index // 100:04d}", topic="orders", partition=index % 100)
        value = OffsetCommitValue(offset=number, leader_epoch=0, metadata="", commit_timestamp=int(time.time() * 1000))
        records.append(Record(0, 0, encode_key(key), encode_value(StateRecord(key, value, 3))))
        if len(records) == COMMITS_IN_A_BATCH:
            batch = build_batch(records)
            patch(batch, 0, 0, 0)
            log.append(batch, (read_header(batch),), 0, 0)
            records.clear()
    log.close()


def load(folder: Path, commits: int, live: int) -> None:
    with node(folder) as broker:
        loads.create_topic(broker.bootstrap, "orders", 100)
        broker.stop()
        write_commits(f"{folder}/data/{GROUP_OFFSETS}-0", commits, live)
        broker.start()
        started = time.perf_counter()
        with WireConnection(broker.bootstrap, timeout_s=60) as connection:
            wanted = OffsetFetchRequestTopics(name="orders", partition_indexes=[0])
            request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="group-0000", topics=[wanted])])
            while (answer := connection.call(request, FETCH, OffsetFetchResponse)).groups[0].error_code:
                assert answer.groups[0].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, answer
                time.sleep(0.01)
        took_s = time.perf_counter() - started
        assert answer.groups[0].topics[0].partitions[0].committed_offset >= 0, answer
        print(f"| loading {commits} commits, {live} live: after the node's first answer | {took_s:.2f} s |")
        print(f"| memory then | {broker.resident_bytes() / 1e6:.0f} MB |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.groups", description=__doc__.split("\n")[0])
    parser.add_argument("--groups", type=int, default=1000, help="that heartbeat (default 1000)")
    parser.add_argument("--seconds", type=float, default=15, help="of heartbeats (default 15)")
    arguments = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 20_000)), hard))
    with tempfile.TemporaryDirectory(prefix="quire-groups-") as name:
        print("| what | figure |\n|---|---|")
        heartbeats(Path(name) / "heartbeats", arguments.groups, 3, arguments.seconds)
        big_rebalance(Path(name) / "rebalance", 100, 1000)
        target(100, 1000)
        load(Path(name) / "load", COMMITS, LIVE)


if __name__ == "__main__":
    main()
