"""`quire groups` with groups of both protocols, whose members are confluent-kafka's."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import confluent_kafka
import pytest

from quire.testing import Cluster
from tests.cli.command import PATIENCE_S, QUIRE, environment, killed_at_the_end, quire
from tests.cli.groups.group_members import PROTOCOLS, commit, consumer, members


@pytest.fixture(scope="module")
def settings() -> Mapping[str, int | str]:
    return {"group.initial.rebalance.delay.ms": 0}


def filled(servers: str, topic: str, *counts: int) -> str:
    """A topic with this many records in each partition."""
    created = quire("topics", "create", topic, "-p", str(len(counts)), servers=servers)
    assert created.returncode == 0, created.stderr
    for partition, records in enumerate(counts):
        lines = "".join(f"{number}\n" for number in range(records)).encode()
        written = quire("produce", topic, "-p", str(partition), servers=servers, stdin=lines)
        assert written.returncode == 0, written.stderr
    return topic


def shown(servers: str, *arguments: str) -> Any:
    result = quire("groups", *arguments, "--json", servers=servers)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def committed(servers: str, group: str) -> dict[int, int | None]:
    (described,) = shown(servers, "describe", group)
    return {part["partition"]: part["committed"] for part in described["partitions"]}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_is_shown_with_its_lag_per_partition_and_in_sum(servers: str, protocol: str) -> None:
    topic, group = filled(servers, f"lag-{protocol}", 10, 20, 0), f"behind-{protocol}"
    with members(servers, group, topic, protocol=protocol, partitions=3) as (reader,):
        reader.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 4)], asynchronous=False)
        (described,) = shown(servers, "describe", group)
        table = quire("groups", "describe", group, servers=servers).stdout.decode().splitlines()
        listed = {found["name"]: found for found in shown(servers, "list", "--lag")}
    (member,) = described["members"]
    assert described["state"] == "Stable"
    assert described["protocol"] == protocol
    assert described["lag"] == 6
    lags = [(part["partition"], part["committed"], part["end_offset"], part["lag"]) for part in described["partitions"]]
    assert lags == [(0, 4, 10, 6), (1, None, 20, None), (2, None, 0, None)]
    assert {part["member"] for part in described["partitions"]} == {member["id"]}
    without = "without a commit: 2 partitions with 20 records"
    assert table[0].startswith(f"group {group}  Stable  1 member  lag 6 ({without})  {protocol} protocol (")
    assert described["uncommitted"] == listed[group]["uncommitted"] == {"partitions": 2, "records": 20}
    assert table[1].split() == ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT", "HOST", "MEMBER"]
    assert table[2].split()[:6] == [topic, "0", "4", "10", "6", "reader-0"]
    assert table[3].split()[:5] == [topic, "1", "-", "20", "-"]
    assert (listed[group]["members"], listed[group]["lag"], listed[group]["state"]) == (1, 6, "Stable")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_are_shown_with_what_each_reads(servers: str, protocol: str) -> None:
    topic, group = filled(servers, f"members-{protocol}", 0, 0, 0, 0), f"together-{protocol}"
    with members(servers, group, topic, protocol=protocol, partitions=4, count=2):
        (described,) = shown(servers, "describe", group)
        table = quire("groups", "describe", group, "--members", servers=servers).stdout.decode().splitlines()
    assert [member["client"] for member in described["members"]] == ["reader-0", "reader-1"]
    read = [index for member in described["members"] for index in member["assignment"][topic]]
    assert sorted(read) == [0, 1, 2, 3]
    assert all(member["subscription"] == [topic] for member in described["members"])
    assert table[1].split() == ["MEMBER", "INSTANCE", "CLIENT", "HOST", "EPOCH", "PARTITIONS", "READS", "TO", "COME"]
    assert [len(line.split()) for line in table[2:]] == [8, 8]
    assert re.search(rf"\b2  {topic}:\d,\d\b", table[2])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_static_member_is_shown_with_its_instance(servers: str, protocol: str) -> None:
    topic, group = filled(servers, f"static-{protocol}", 0), f"standing-{protocol}"
    with members(servers, group, topic, protocol=protocol, partitions=1, group_instance_id="desk-1"):
        (described,) = shown(servers, "describe", group)
    assert [member["instance"] for member in described["members"]] == ["desk-1"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_groups_are_listed_by_state_and_protocol(servers: str, protocol: str) -> None:
    topic, alone, group = filled(servers, f"listed-{protocol}", 0), f"left-alone-{protocol}", f"at-work-{protocol}"
    commit(servers, alone, topic, 0)
    with members(servers, group, topic, protocol=protocol, partitions=1):
        empty = {found["name"] for found in shown(servers, "list", "--state", "empty")}
        by_protocol = {
            name: {found["name"] for found in shown(servers, "list", "--protocol", name)} for name in PROTOCOLS
        }
        table = quire("groups", "list", servers=servers).stdout.decode().splitlines()
    assert alone in empty and group not in empty
    assert {name for name, found in by_protocol.items() if group in found} == {protocol}
    assert table[0].split() == ["NAME", "PROTOCOL", "TYPE", "STATE", "COORDINATOR"]
    assert [group, protocol, "consumer", "Stable", "1"] in [line.split() for line in table]


def test_a_group_without_members_is_deleted_with_its_offsets(servers: str) -> None:
    topic = filled(servers, "deleted", 5)
    commit(servers, "short-lived", topic, 3)
    gone = quire("groups", "delete", "short-lived", "--yes", servers=servers)
    assert (gone.returncode, gone.stdout) == (0, b"short-lived: deleted\n")
    assert quire("groups", "describe", "short-lived", servers=servers).returncode == 4
    again = quire("groups", "delete", "short-lived", servers=servers)
    assert again.returncode == 4 and "quire groups list" in again.stderr.decode()
    assert quire("groups", "delete", "short-lived", "--if-exists", servers=servers).returncode == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_with_members_is_neither_deleted_nor_reset(servers: str, protocol: str) -> None:
    topic, group = filled(servers, f"in-use-{protocol}", 5), f"busy-{protocol}"
    with members(servers, group, topic, protocol=protocol, partitions=1):
        refused = quire("groups", "delete", group, servers=servers)
        reset = ("groups", "reset-offsets", group, "--topic", topic, "--to-latest")
        planned = quire(*reset, servers=servers)
        not_reset = quire(*reset, "--execute", servers=servers)
        not_forgotten = quire("groups", "delete-offsets", group, "--topic", topic, servers=servers)
    for result in (refused, not_reset):
        assert result.returncode == 1
        assert "stop its members first" in result.stderr.decode()
        assert f"`quire groups describe {group} --members`" in result.stderr.decode()
    assert planned.returncode == 0 and "stop 1 member of" in planned.stderr.decode()
    sentence = not_forgotten.stderr.decode()
    assert not_forgotten.returncode == 4 and "has no committed offsets" in sentence
    assert "GROUP_ID_NOT_FOUND" not in sentence  # the group exists


def test_a_group_that_does_not_exist_is_exit_code_4(servers: str) -> None:
    topic = filled(servers, "nobody-reads", 1)
    for arguments in (
        ("describe", "nobody"),
        ("delete", "nobody"),
        ("delete-offsets", "nobody", "--topic", topic),
        ("reset-offsets", "nobody", "--all-topics", "--to-earliest"),
    ):
        result = quire("groups", *arguments, servers=servers)
        assert result.returncode == 4, arguments
        assert result.stderr.decode().count("\n") == 1


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        (["--to-earliest"], [0, 0]),
        (["--to-latest"], [10, 20]),
        (["--to-current"], [5, 7]),
        (["--to-offset", "12"], [10, 12]),
        (["--shift-by", "2"], [7, 9]),
        (["--shift-by", "-6"], [0, 1]),
        (["--to-datetime", "1000"], [0, 0]),
        (["--to-datetime", "2100-01-01T00:00:00Z"], [10, 20]),
        (["--by-duration", "P1D"], [0, 0]),
    ],
    ids=lambda goal: " ".join(map(str, goal)),
)
def test_offsets_are_shown_first_and_moved_on_request(
    servers: str, goal: list[str], expected: list[int], request: pytest.FixtureRequest
) -> None:
    group = f"moved-{request.node.callspec.indices['goal']}"
    topic = filled(servers, f"{group}-topic", 10, 20)
    commit(servers, group, topic, 5, 7)
    reset = ("groups", "reset-offsets", group, "--topic", topic, *goal)
    planned = quire(*reset, servers=servers)
    assert planned.returncode == 0, planned.stderr
    rows = [line.split() for line in planned.stdout.decode().splitlines()]
    assert rows[0] == ["TOPIC", "PARTITION", "COMMITTED", "NEW", "LAG", "THEN"]
    assert [[int(row[2]), int(row[3])] for row in rows[1:]] == [[5, expected[0]], [7, expected[1]]]
    assert "Nothing was changed; add --execute" in planned.stderr.decode()
    assert committed(servers, group) == {0: 5, 1: 7}
    done = quire(*reset, "--execute", servers=servers)
    assert done.returncode == 0 and b"Nothing" not in done.stderr and b"Done: " in done.stderr
    assert committed(servers, group) == dict(enumerate(expected))


def test_members_read_on_from_where_the_group_was_reset_to(servers: str) -> None:
    topic = filled(servers, "read-again", 10)
    commit(servers, "again", topic, 10)
    moved = quire("groups", "reset-offsets", "again", "-t", topic, "--to-offset", "6", "--yes", servers=servers)
    assert moved.returncode == 0, moved.stderr
    reader = consumer(servers, "again")
    try:
        reader.subscribe([topic])
        first = reader.poll(PATIENCE_S)
        assert first.value() == b"6"
    finally:
        reader.close()


def test_only_the_partitions_named_are_moved(servers: str) -> None:
    topic = filled(servers, "some-moved", 9, 9, 9)
    commit(servers, "some", topic, 1, 2, 3)
    quire("groups", "reset-offsets", "some", "-t", f"{topic}:0,2", "--to-latest", "--execute", servers=servers)
    assert committed(servers, "some") == {0: 9, 1: 2, 2: 9}
    missing = quire("groups", "reset-offsets", "some", "-t", f"{topic}:7", "--to-latest", servers=servers)
    assert missing.returncode == 4 and "no partition 7, only 0 to 2" in missing.stderr.decode()
    nothing = quire("groups", "reset-offsets", "other", "-t", topic, "--shift-by", "1", servers=servers)
    assert nothing.returncode == 1 and "nothing to shift it from" in nothing.stderr.decode()


def test_missing_offsets_become_the_nearest_with_a_note(servers: str) -> None:
    topic = filled(servers, "nearest", 10)
    result = quire("groups", "reset-offsets", "near", "-t", topic, "--to-offset", "99", "--json", servers=servers)
    assert json.loads(result.stdout)["partitions"][0]["new"] == 10
    assert f"{topic}-0 has no offset 99; its end offset is used." in result.stderr.decode()


def test_a_group_can_be_made_by_setting_its_offsets(servers: str) -> None:
    topic = filled(servers, "made-by-hand", 10)
    reset = ("groups", "reset-offsets", "by-hand", "-t", topic, "--to-offset", "3")
    planned = quire(*reset, servers=servers)
    assert "there is no group by-hand yet" in planned.stderr.decode()
    assert quire(*reset, "--execute", servers=servers).returncode == 0
    assert committed(servers, "by-hand") == {0: 3}


def test_offsets_are_kept_in_a_file_and_set_from_it(servers: str, tmp_path: Path) -> None:
    topic = filled(servers, "filed", 10, 10)
    commit(servers, "filed", topic, 4, 8)
    kept = quire("groups", "reset-offsets", "filed", "--all-topics", "--to-current", "--export", servers=servers)
    assert kept.stdout.decode() == f"{topic},0,4\n{topic},1,8\n"
    file = tmp_path / "offsets.csv"
    file.write_bytes(kept.stdout)
    commit(servers, "filed", topic, 0, 0)
    back = ("groups", "reset-offsets", "filed", "--from-file")
    assert quire(*back, str(file), "--execute", servers=servers).returncode == 0
    assert committed(servers, "filed") == {0: 4, 1: 8}
    of_several = f'"other","{topic}",0,9\n"filed","{topic}",1,1\n'
    assert quire(*back, "-", "--execute", servers=servers, stdin=of_several.encode()).returncode == 0
    assert committed(servers, "filed") == {0: 4, 1: 1}


def test_offsets_of_single_topics_are_forgotten(servers: str) -> None:
    kept, dropped = filled(servers, "kept", 5), filled(servers, "dropped", 5, 5)
    commit(servers, "forgetful", kept, 1)
    commit(servers, "forgetful", dropped, 2, 3)
    result = quire("groups", "delete-offsets", "forgetful", "-t", f"{dropped}:1", servers=servers)
    assert (result.returncode, result.stdout.decode()) == (0, f"{dropped}-1: deleted\n")
    (described,) = shown(servers, "describe", "forgetful")
    left = [(part["topic"], part["partition"]) for part in described["partitions"]]
    assert left == [(dropped, 0), (kept, 0)]


def test_offsets_of_deleted_topics_are_left_out(servers: str) -> None:
    stays, goes = filled(servers, "stays", 5), filled(servers, "goes", 5)
    commit(servers, "outlived", stays, 1)
    commit(servers, "outlived", goes, 2)
    assert quire("topics", "delete", goes, "--yes", servers=servers).returncode == 0
    reset = quire("groups", "reset-offsets", "outlived", "--all-topics", "--to-latest", "--json", servers=servers)
    assert [part["topic"] for part in json.loads(reset.stdout)["partitions"]] == [stays]


def watching(servers: str, *arguments: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [*QUIRE, "groups", "describe", *arguments, "--watch", "--interval", "0.1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment({"QUIRE_BOOTSTRAP": servers}),
    )
    return killed_at_the_end(process)


def test_watching_shows_what_changes_and_ctrl_c_is_silent(servers: str) -> None:
    topic = filled(servers, "watched", 10)
    commit(servers, "watched", topic, 2)
    with watching(servers, "watched", "--json") as process:
        assert process.stdout is not None and process.stderr is not None
        assert json.loads(process.stdout.readline())[0]["lag"] == 8
        commit(servers, "watched", topic, 7)
        assert next(lag for line in process.stdout if (lag := json.loads(line)[0]["lag"]) != 8) == 3
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
        assert process.stderr.read() == b""


def test_watching_waits_for_a_group_that_does_not_exist_yet(servers: str) -> None:
    topic = filled(servers, "awaited", 10)
    with watching(servers, "awaited") as process, watching(servers, "awaited", "--json") as for_programs:
        assert process.stdout is not None and for_programs.stdout is not None
        read_until(process.stdout, b"group awaited does not exist yet")
        assert json.loads(for_programs.stdout.readline()) == []
        commit(servers, "awaited", topic, 2)
        read_until(process.stdout, b"lag 8")
        read_until(for_programs.stdout, b'"lag": 8')


def test_every_group_that_does_not_exist_is_named(servers: str) -> None:
    result = quire("groups", "describe", "nobody", "never", servers=servers)
    assert result.returncode == 4
    assert ["nobody" in line or "never" in line for line in result.stderr.decode().splitlines()] == [True, True]


def read_until(stream: IO[bytes], words: bytes) -> None:
    for line in stream:
        if words in line:
            return
    raise AssertionError(f"the view ended without {words!r}")


def test_watching_shows_a_broker_stop_and_return() -> None:
    with Cluster() as cluster:
        commit(cluster.bootstrap_servers, "kept-in-sight", filled(cluster.bootstrap_servers, "in-sight", 5), 2)
        with watching(cluster.bootstrap_servers, "kept-in-sight") as process:
            assert process.stdout is not None and process.stderr is not None
            read_until(process.stdout, b"lag 3")
            cluster.kill()
            read_until(process.stdout, b"is not reachable: connection refused")
            cluster.restart()
            read_until(process.stdout, b"lag 3")
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 130
            assert process.stderr.read() == b""


def test_at_a_terminal_each_view_takes_the_place_of_the_one_before(servers: str) -> None:
    commit(servers, "on-screen", filled(servers, "screen", 5), 2)
    ours, theirs = os.openpty()
    try:
        started = subprocess.Popen(
            [*QUIRE, "groups", "describe", "on-screen", "--watch", "--interval", "0.1"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment({"QUIRE_BOOTSTRAP": servers, "TERM": "xterm"}),
        )
        os.close(theirs)  # so that reading ends with the process
        shown = b""
        with killed_at_the_end(started) as process:
            while shown.count(b"\x1b[H") < 4:
                shown += os.read(ours, 10_000)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 130
    finally:
        os.close(ours)
    whole_views = shown.split(b"\x1b[H")[1:-1]
    for view in whole_views:
        assert b"group on-screen  Empty  0 members  lag 3" in view
        assert view.endswith(b"\x1b[J")
