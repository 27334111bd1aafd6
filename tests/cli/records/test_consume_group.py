"""`quire consume --group` is a group member like any other."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from quire.cli.records.consume_group import read_as_member
from quire.cli.records.record_format import text_formatter
from quire.cli.records.record_printer import Printer
from quire.client.consumer import BEGINNING, ConsumerConfig
from quire.client.group_consumer import GroupConsumer
from quire.console.failure import EXIT_NOT_FOUND
from quire.console.options import connect
from tests.cli.command import PATIENCE_S, QUIRE, environment, quire
from tests.cli.groups.group_members import commit, members


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
    """How many partitions each member reads, once changes have ended."""
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


def test_a_group_continues_where_it_stopped(servers: str) -> None:
    topic = create(servers, "goes-on", 3)
    produce(servers, topic, 0, 90, partitions=3)
    assert read(servers, topic, "--group", "on", "--from-beginning") == list(range(90))
    assert committed(servers, "on") == [30, 30, 30]
    nothing = quire("consume", topic, "--group", "on", "--from-beginning", servers=servers)
    assert (nothing.returncode, nothing.stdout) == (0, b"")
    assert nothing.stderr.decode() == (
        "Nothing new for group on: `quire groups describe on` shows its offsets, and `quire groups reset-offsets on "
        "--topic goes-on --to-earliest --execute` has it read all records again; --follow waits for more.\n"
    )
    produce(servers, topic, 90, 30, partitions=3)
    assert read(servers, topic, "--group", "on") == list(range(90, 120))


def test_a_new_group_begins_at_the_end_and_misses_nothing_from_the_first_record_on(servers: str) -> None:
    topic = create(servers, "from-the-end", 2)
    produce(servers, topic, 0, 10, partitions=2)
    with follow(servers, topic, "late") as member:
        assert member.stdout is not None
        wait_for_owners(servers, "late", 2)
        produce(servers, topic, 10, 1)
        assert member.stdout.readline() == b"10\n"
        member.send_signal(signal.SIGINT)
        assert member.wait(PATIENCE_S) == 130
    assert committed(servers, "late")[1] == 5, "where the other partition began is committed too"
    produce(servers, topic, 11, 4, partitions=2)
    assert {11, 12, 13, 14} <= set(read(servers, topic, "--group", "late"))


class InterruptedOutput:
    """Ctrl-C comes as soon as the first record is printed."""

    def write(self, data: bytes, /) -> object:
        return len(data)

    def flush(self) -> None:
        raise KeyboardInterrupt


def test_ctrl_c_behind_the_first_record_commits_where_reading_began(servers: str) -> None:
    topic = create(servers, "interrupted", 2)
    produce(servers, topic, 0, 10, partitions=2)
    with connect(servers, PATIENCE_S) as client:
        member = GroupConsumer(client.cluster, "interrupted", [topic], ConsumerConfig(), BEGINNING)
        printer = Printer(InterruptedOutput(), text_formatter(key_separator=None, verbose=False), None, None)
        with pytest.raises(KeyboardInterrupt):
            read_as_member(client, member, printer, follow=True, read_committed=False)
    assert committed(servers, "interrupted") == [0, 0]


def test_a_new_group_that_finds_nothing_at_the_end_commits_nothing_and_hears_where_else_to_begin(servers: str) -> None:
    topic = create(servers, "at-the-end", 1)
    produce(servers, topic, 0, 3)
    result = quire("consume", topic, "--group", "at-the-end", servers=servers)
    assert (result.returncode, result.stdout) == (0, b"")
    assert result.stderr.decode() == (
        "Group at-the-end has no committed offset for at-the-end:0, so reading starts at the end: "
        "add --from-beginning for existing records; --follow waits for more.\n"
    )
    assert read(servers, topic, "--group", "at-the-end", "--from-beginning") == [0, 1, 2]


def test_the_hint_to_a_group_that_has_read_everything_leads_to_the_records(servers: str) -> None:
    topic = create(servers, "hinted", 1)
    produce(servers, topic, 0, 3)
    assert read(servers, topic, "--group", "hinted", "--from-beginning") == [0, 1, 2]
    hint = quire("consume", topic, "--group", "hinted", servers=servers).stderr.decode()
    advice = hint.split("`")[3]
    assert quire(*advice.split()[1:], servers=servers).returncode == 0, advice
    assert read(servers, topic, "--group", "hinted") == [0, 1, 2]


def test_a_filter_that_matches_nothing_leaves_the_group_where_it_is(servers: str) -> None:
    topic = create(servers, "filtered", 1)
    produce(servers, topic, 0, 3)
    nothing = quire("consume", topic, "-g", "f", "--from-beginning", "--key", "typo", servers=servers)
    assert nothing.stdout == b""
    assert nothing.stderr.decode() == "0 of 3 records matched; group f keeps its offsets\n"
    assert read(servers, topic, "--group", "f", "--from-beginning") == [0, 1, 2]


def test_only_what_was_printed_is_committed(servers: str) -> None:
    topic = create(servers, "counted", 1)
    produce(servers, topic, 0, 100)
    assert read(servers, topic, "--group", "count", "--from-beginning", "-n", "7") == list(range(7))
    assert committed(servers, "count") == [7]
    assert read(servers, topic, "--group", "count", "-n", "5") == list(range(7, 12))


def test_members_share_the_partitions_and_take_over_from_one_that_leaves(servers: str) -> None:
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


def test_a_committed_offset_that_was_deleted_is_ignored(servers: str) -> None:
    topic = create(servers, "gone", 1)
    produce(servers, topic, 0, 10)
    commit(servers, "lost", topic, 5000)
    assert read(servers, topic, "--group", "lost", "--from-beginning") == list(range(10))
    commit(servers, "lost-too", topic, 5000)
    assert read(servers, topic, "--group", "lost-too") == []
    assert committed(servers, "lost-too") == [5000], "nothing was printed"
    assert read(servers, topic, "--group", "lost-too", "--from-beginning") == list(range(10))
    assert committed(servers, "lost-too") == [10]


def group_protocol(servers: str, group: str) -> str:
    (described,) = json.loads(quire("groups", "describe", group, "--json", servers=servers).stdout)
    protocol: str = described["protocol"]
    return protocol


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_it_joins_a_group_as_the_kind_that_the_group_is(servers: str, protocol: str) -> None:
    topic = group = create(servers, f"kind-{protocol}", 4)
    with members(servers, group, topic, protocol=protocol, partitions=4) as (other,):
        with follow(servers, topic, group) as own:
            assert own.stdout is not None
            deadline = time.monotonic() + PATIENCE_S
            while owners(servers, group) != [2, 2]:
                message = other.poll(0.1)
                assert message is None or message.error() is None, message.error()
                assert time.monotonic() < deadline
            assert group_protocol(servers, group) == protocol
            produce(servers, topic, 0, 40, partitions=4)
            found = {int(own.stdout.readline()) for _ in range(20)}
            while len(found) < 40:
                message = other.poll(1)
                if message is not None:
                    assert message.error() is None, message.error()
                    found.add(int(message.value()))
                assert time.monotonic() < deadline
            own.send_signal(signal.SIGTERM)
            assert own.wait(PATIENCE_S) == 143
        while owners(servers, group) != [4]:
            message = other.poll(0.1)
            assert message is None or message.error() is None, message.error()
            assert time.monotonic() < deadline
        assert group_protocol(servers, group) == protocol
    assert read(servers, topic, "--group", group) == [], "nothing is left to read: it has committed its half"


def test_a_classic_group_without_members_stays_classic_and_two_of_us_share_it(servers: str) -> None:
    topic = group = create(servers, "two-classic", 4)
    commit(servers, group, topic, 0, 0, 0, 0)
    assert group_protocol(servers, group) == "classic"
    with follow(servers, topic, group) as first, follow(servers, topic, group) as second:
        wait_for_owners(servers, group, 2, 2)
        produce(servers, topic, 0, 40, partitions=4)
        found = [int(process.stdout.readline()) for process in (first, second) for _ in range(20)]  # type: ignore[union-attr]
        assert sorted(found) == list(range(40))
        first.kill()  # it cannot leave; the other takes over when its session is over, or at the end of the test
        second.send_signal(signal.SIGINT)
        assert second.wait(PATIENCE_S) == 130
    assert group_protocol(servers, group) == "classic"
