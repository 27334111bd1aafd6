import json
import os
import subprocess

import pytest

from tests.cli.command import PATIENCE_S, QUIRE, environment, killed_at_the_end, quire, read_to_the_end


def test_a_topic_is_created_listed_described_grown_and_deleted(servers: str) -> None:
    created = quire("topics", "create", "life", "-p", "2", "-s", "retention.ms=1000000", servers=servers)
    assert (created.returncode, created.stdout) == (0, b"life: created (2 partitions, 1 replica)\n")
    listed = quire("topics", "list", servers=servers).stdout.decode().splitlines()
    assert listed[0].split() == ["NAME", "PARTITIONS", "REPLICAS"]
    assert ["life", "2", "1"] in [line.split() for line in listed]

    grown = quire("topics", "alter", "life", "-p", "4", "--set", "cleanup.policy=compact", servers=servers)
    assert grown.stdout.decode().splitlines() == ["life: 1 setting changed", "life: 4 partitions now"]
    (described,) = json.loads(quire("topics", "describe", "life", "--json", servers=servers).stdout)
    assert described["configs"] == {"cleanup.policy": "compact", "retention.ms": "1000000"}
    assert [part["partition"] for part in described["partitions"]] == [0, 1, 2, 3]
    assert {part["leader"] for part in described["partitions"]} == {1}

    deleted = quire("topics", "delete", "life", "--yes", servers=servers)
    assert (deleted.returncode, deleted.stdout) == (0, b"life: deleted\n")
    assert quire("topics", "describe", "life", servers=servers).returncode == 4


@pytest.mark.parametrize(
    ("answer", "options", "code", "left"),
    [
        ("n\n", [], 1, True),
        ("\n", [], 1, True),
        ("\x04", [], 1, True),
        ("what?\ny\n", [], 0, False),
        ("", ["--yes"], 0, False),
    ],
)
def test_delete_asks_at_a_terminal_unless_yes_is_given(
    servers: str, answer: str, options: list[str], code: int, left: bool
) -> None:
    topic = f"asked-{len(answer)}-{ord(answer[:1] or '-')}"
    quire("topics", "create", topic, servers=servers)
    ours, theirs = os.openpty()
    try:
        command = [*QUIRE, "topics", "delete", topic, *options]
        started = subprocess.Popen(
            command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environment({"QUIRE_BOOTSTRAP": servers})
        )
        os.close(theirs)
        with killed_at_the_end(started) as process:
            os.write(ours, answer.encode())
            out, _ = process.communicate(timeout=PATIENCE_S)
        asked = read_to_the_end(ours)
    finally:
        os.close(ours)
    assert asked.count(b"with all records?") == answer.count("\n") or answer == "\x04"
    assert out == (f"{topic}: deleted\n".encode() if code == 0 else b""), "the question is not part of the output"
    assert (b"not confirmed: nothing was changed" in asked) == (code == 1)
    assert process.returncode == code
    assert (quire("topics", "describe", topic, servers=servers).returncode == 0) == left


def test_delete_does_not_ask_without_a_terminal(servers: str) -> None:
    quire("topics", "create", "unasked", servers=servers)
    deleted = quire("topics", "delete", "unasked", servers=servers)
    assert (deleted.returncode, deleted.stdout) == (0, b"unasked: deleted\n")


def test_the_table_of_a_topic_shows_where_its_records_begin_and_end(servers: str) -> None:
    quire("topics", "create", "table", "-p", "1", servers=servers)
    quire("produce", "table", servers=servers, stdin=b"a\nb\nc\n")
    head, titles, row = quire("topics", "describe", "table", servers=servers).stdout.decode().splitlines()
    assert head.startswith("topic table  id ")
    assert titles.split() == ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "ELR", "FIRST", "END"]
    assert row.split() == ["0", "1", "0", "1", "1", "-", "0", "3"]


def test_kafkas_own_topics_are_described_only_if_asked_for_as_they_are_listed(servers: str) -> None:
    own = "__consumer_offsets"
    # The first look-up of a group's coordinator creates the topic.
    quire("topics", "create", "ordinary", servers=servers)
    quire("groups", "describe", "nobody", servers=servers)
    for subcommand in ("list", "describe"):
        for arguments, shown in [((), False), (("--internal",), True)]:
            done = quire("topics", subcommand, *arguments, "--json", servers=servers)
            names = [topic["name"] for topic in json.loads(done.stdout)]
            assert (own in names, "ordinary" in names) == (shown, True), (subcommand, arguments)
    (named,) = json.loads(quire("topics", "describe", own, "--json", servers=servers).stdout)
    assert named["internal"] is True


def test_creating_twice_is_an_error_unless_it_is_accepted(servers: str) -> None:
    assert quire("topics", "create", "twice", servers=servers).returncode == 0
    again = quire("topics", "create", "twice", servers=servers)
    assert again.returncode == 1
    assert "--if-not-exists" in again.stderr.decode()
    assert quire("topics", "create", "twice", "--if-not-exists", servers=servers).returncode == 0


def test_one_bad_name_among_several_fails_alone_and_is_named(servers: str) -> None:
    result = quire("topics", "create", "good", "bad name", servers=servers)
    assert result.returncode == 1
    assert result.stdout.decode().startswith("good: created")
    assert result.stderr.decode().startswith("quire: bad name: ")
    assert result.stderr.decode().count("\n") == 1


def test_programs_get_every_outcome_as_json(servers: str) -> None:
    result = quire("topics", "create", "fine", "not fine", "--json", servers=servers)
    fine, not_fine = json.loads(result.stdout)
    assert fine["created"] is True and fine["partitions"] == 3
    assert not_fine["error"] == "INVALID_TOPIC_EXCEPTION"
    assert result.returncode == 1


def test_validating_creates_nothing(servers: str) -> None:
    assert quire("topics", "create", "only-checked", "--validate-only", servers=servers).returncode == 0
    assert quire("topics", "describe", "only-checked", servers=servers).returncode == 4


def test_replicas_can_be_placed_by_hand(servers: str) -> None:
    result = quire("topics", "create", "placed", "--replica-assignment", "1,1", servers=servers)
    assert result.returncode == 0, result.stderr
    assert quire("topics", "create", "misplaced", "--replica-assignment", "1:9", servers=servers).returncode == 1
    assert quire("topics", "create", "garbled", "--replica-assignment", "one", servers=servers).returncode == 2


def test_deleting_a_missing_topic_is_exit_code_4_unless_accepted(servers: str) -> None:
    assert quire("topics", "delete", "nowhere", servers=servers).returncode == 4
    assert quire("topics", "delete", "nowhere", "--if-exists", servers=servers).returncode == 0


def test_a_cluster_is_described_for_people_and_for_programs(servers: str) -> None:
    shown = quire("cluster", servers=servers).stdout.decode()
    assert servers in shown and "controller" in shown and "metadata.version" in shown
    described = json.loads(quire("cluster", "--json", servers=servers).stdout)
    assert described["nodes"][0]["id"] == 1
    assert described["quorum"]["leader"] == 1
    assert described["features"]["metadata.version"]["level"] > 0


def test_programs_learn_what_altering_a_topic_did(servers: str) -> None:
    quire("topics", "create", "altered", "-p", "1", "--set", "segment.bytes=2000000", servers=servers)
    arguments = ("altered", "-p", "2", "--set", "segment.bytes=2000000", "--set", "max.message.bytes=9", "--json")
    shown = json.loads(quire("topics", "alter", *arguments, servers=servers).stdout)
    assert shown == {"name": "altered", "changed": ["max.message.bytes"], "partitions": 2}
    fewer = quire("topics", "alter", "altered", "-p", "1", "--json", servers=servers)
    assert fewer.returncode == 1 and "partitions" not in json.loads(fewer.stdout)
