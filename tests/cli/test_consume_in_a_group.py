"""`quire consume --group`: a member of a group like any other."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from quire.cli.lazy import EXIT_NOT_FOUND
from tests.cli.command import PATIENCE_S, QUIRE, environment, quire
from tests.cli.group_members import commit, members


@pytest.fixture(scope="module")
def settings() -> Mapping[str, int | str]:
    return {"group.consumer.heartbeat.interval.ms": 500, "group.consumer.min.heartbeat.interval.ms": 500}


def create(servers: str, topic: str, partitions: int) -> str:
    created = quire("topics", "create", topic, "-p", str(partitions), servers=servers)
    assert created.returncode == 0, created.stderr
    return topic


def produce(servers: str, topic: str, first: int, count: int, partitions: int = 1) -> None:
    for partition in range(partitions):
        lines = "".join(f"{number}\n" for number in range(first + partition, first + count, partitions)).encode()
        written = quire("produce", topic, "-p", str(partition), servers=servers, stdin=lines)
        assert written.returncode == 0, written.stderr


def read(servers: str, topic: str, *arguments: str) -> list[int]:
    result = quire("consume", topic, *arguments, servers=servers)
    assert result.returncode == 0, result.stderr
    return sorted(int(line) for line in result.stdout.split())


def committed(servers: str, group: str) -> list[int | None]:
    shown = quire("groups", "describe", group, "--json", servers=servers)
    assert shown.returncode == 0, shown.stderr
    return [part["committed"] for part in json.loads(shown.stdout)[0]["partitions"]]


@contextmanager
def follow(servers: str, topic: str, group: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A member that reads until it is told to stop, or until the test ends."""
    process = subprocess.Popen(
        [*QUIRE, "consume", topic, "--group", group, "--follow", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment({"QUIRE_BOOTSTRAP": servers}),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def owners(servers: str, group: str) -> list[int]:
    """How many partitions each member reads, while nothing changes any more."""
    result = quire("groups", "describe", group, "--json", servers=servers)
    if result.returncode == EXIT_NOT_FOUND:
        return []
    (described,) = json.loads(result.stdout)
    counts = [sum(map(len, member["assignment"].values())) for member in described["members"]]
    return sorted(counts) if described["state"] == "Stable" else []


def wait_for_owners(servers: str, group: str, *expected: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (found := owners(servers, group)) != list(expected):
        assert time.monotonic() < deadline, f"the members have {found} partitions, not {expected}"


def test_a_group_goes_on_where_it_has_got_to(servers: str) -> None:
    topic = create(servers, "goes-on", 3)
    produce(servers, topic, 0, 90, partitions=3)
    assert read(servers, topic, "--group", "on", "--from-beginning") == list(range(90))
    assert committed(servers, "on") == [30, 30, 30]
    nothing = quire("consume", topic, "--group", "on", "--from-beginning", servers=servers)
    assert (nothing.returncode, nothing.stdout) == (0, b"")
    hint = "Nothing new for group on: `quire groups describe on` shows where it is; --follow waits for more.\n"
    assert nothing.stderr.decode() == hint
    produce(servers, topic, 90, 30, partitions=3)
    assert read(servers, topic, "--group", "on") == list(range(90, 120))


def test_a_new_group_begins_at_the_end_and_misses_nothing_from_then_on(servers: str) -> None:
    topic = create(servers, "from-the-end", 1)
    produce(servers, topic, 0, 10)
    assert read(servers, topic, "--group", "late") == []
    produce(servers, topic, 10, 5)
    assert read(servers, topic, "--group", "late") == [10, 11, 12, 13, 14]


def test_a_new_group_that_finds_nothing_at_the_end_hears_where_else_to_begin(servers: str) -> None:
    topic = create(servers, "at-the-end", 1)
    produce(servers, topic, 0, 3)
    result = quire("consume", topic, "--group", "at-the-end", servers=servers)
    assert (result.returncode, result.stdout) == (0, b"")
    assert "with --from-beginning at the start" in result.stderr.decode()


def test_only_what_was_printed_is_committed(servers: str) -> None:
    topic = create(servers, "counted", 1)
    produce(servers, topic, 0, 100)
    assert read(servers, topic, "--group", "count", "--from-beginning", "-n", "7") == list(range(7))
    assert committed(servers, "count") == [7]
    assert read(servers, topic, "--group", "count", "-n", "5") == list(range(7, 12))


def test_members_share_the_partitions_and_take_over_from_who_leaves(servers: str) -> None:
    topic, group = create(servers, "shared", 4), "sharing"
    with follow(servers, topic, group, "--from-beginning") as first:
        assert first.stdout is not None and first.stderr is not None
        wait_for_owners(servers, group, 4)
        with follow(servers, topic, group) as second:
            assert second.stdout is not None
            wait_for_owners(servers, group, 2, 2)
            produce(servers, topic, 0, 40, partitions=4)
            halves = [sorted(int(process.stdout.readline()) for _ in range(20)) for process in (first, second)]  # type: ignore[union-attr]
            assert sorted(halves[0] + halves[1]) == list(range(40))
            first.send_signal(signal.SIGINT)
            assert first.wait(PATIENCE_S) == 130
            assert first.stderr.read() == b""
            wait_for_owners(servers, group, 4)
            produce(servers, topic, 40, 40, partitions=4)
            assert sorted(int(second.stdout.readline()) for _ in range(40)) == list(range(40, 80))
            second.send_signal(signal.SIGINT)
            assert second.wait(PATIENCE_S) == 130
    assert committed(servers, group) == [20, 20, 20, 20]


def test_it_shares_with_members_of_other_clients(servers: str) -> None:
    topic, group = create(servers, "mixed", 2), "mixed"
    with (
        members(servers, group, topic, protocol="consumer", partitions=2) as (other,),
        follow(servers, topic, group) as own,
    ):
        deadline = time.monotonic() + PATIENCE_S
        while owners(servers, group) != [1, 1]:
            other.poll(0.1)
            assert time.monotonic() < deadline
        own.send_signal(signal.SIGINT)
        assert own.wait(PATIENCE_S) == 130


def test_an_offset_that_is_gone_is_as_if_nothing_had_been_committed(servers: str) -> None:
    topic = create(servers, "gone", 1)
    produce(servers, topic, 0, 10)
    commit(servers, "lost", topic, 5000)
    assert read(servers, topic, "--group", "lost", "--from-beginning") == list(range(10))
    commit(servers, "lost-too", topic, 5000)
    assert read(servers, topic, "--group", "lost-too") == []
    assert committed(servers, "lost-too") == [10]
