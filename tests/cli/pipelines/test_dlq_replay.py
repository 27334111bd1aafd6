"""`quire dlq replay`, as a process, against a real node."""

import pytest

from tests.cli.command import quire
from tests.cli.pipelines.buried import bury, content, counts, new_topic, replay, values


@pytest.fixture
def topic(servers: str) -> str:
    return new_topic(servers)


def alter(servers: str, topic: str, setting: str) -> None:
    assert quire("topics", "alter", topic, "--set", setting, servers=servers).returncode == 0


def test_replaying_sends_each_back_once_to_its_partition_one_attempt_further(servers: str, topic: str) -> None:
    bury(servers, topic, {}, {"value": None}, {"attempt": 2})
    assert replay(servers, topic) == {
        "topic": f"{topic}.dlq",
        "dry_run": False,
        "sent": 3,
        "sent_before": 0,
        "passed_over": 0,
    }
    records = content(servers, topic)
    assert [(record["partition"], record["key"], record["value"]) for record in records] == [
        (2, "key", "0"),
        (2, "key", None),
        (2, "key", "2"),
    ]
    assert [record["headers"] for record in records] == [
        [{"name": "trace", "value": "t"}, {"name": "dlq.attempt", "value": attempt}] for attempt in "223"
    ]
    assert replay(servers, f"{topic}.dlq")["sent"] == 0
    bury(servers, topic, {})
    assert replay(servers, topic)["sent"] == 1
    assert len(content(servers, topic)) == 4


def test_letters_written_in_transactions_are_sent_back_once_too(servers: str, topic: str) -> None:
    bury(servers, topic, {}, {}, transactional_id=topic)
    assert replay(servers, topic)["sent"] == 2
    bury(servers, topic, {}, transactional_id=topic)
    assert replay(servers, topic)["sent"] == 1


def test_letters_that_do_not_match_the_filter_stay(servers: str, topic: str) -> None:
    bury(servers, topic, {"error": "rule a does not hold"}, {"error": "rule b does not hold"}, {"attempt": 3})
    summary = replay(servers, topic, "--error", "rule a")
    assert (summary["sent"], summary["passed_over"]) == (1, 2)
    assert counts(servers, topic) == {
        "rule a does not hold": (1, 0, 1, 0),
        "rule b does not hold": (1, 1, 0, 0),
        "broken": (1, 0, 0, 1),
    }
    assert replay(servers, topic)["sent"] == 1, "rule b"
    assert replay(servers, topic, "--max-attempts", "9")["sent"] == 1, "the one that had failed too often"
    assert values(servers, topic) == ["0", "1", "2"]


def test_a_filter_that_matches_nothing_leaves_everything_and_reports_it(servers: str, topic: str) -> None:
    bury(servers, topic, {}, {})
    done = quire("dlq", "replay", topic, "--error", "typo", servers=servers)
    assert (done.returncode, content(servers, topic)) == (0, [])
    assert done.stdout.decode() == f"0 dead letters sent back from {topic}.dlq\n  2 stay: with another error\n"
    assert f"`quire dlq list {topic}.dlq` shows the errors" in done.stderr.decode()
    assert counts(servers, topic) == {"broken": (2, 2, 0, 0)}
    assert replay(servers, topic)["sent"] == 2


def test_a_dry_run_shows_what_would_be_sent_and_writes_nothing(servers: str, topic: str) -> None:
    bury(servers, topic, {"error": "a"}, {"error": "a"}, {"error": "b"})
    assert replay(servers, topic, "--dry-run", "--error", "a") == {
        "topic": f"{topic}.dlq",
        "dry_run": True,
        "would_send": 2,
        "sent_before": 0,
        "passed_over": 1,
    }
    shown = quire("dlq", "replay", topic, "--dry-run", servers=servers).stdout.decode().splitlines()
    assert [line.split() for line in shown[:3]] == [["LETTERS", "TO", "ERROR"], ["2", topic, "a"], ["1", topic, "b"]]
    assert shown[3] == f"3 dead letters would be sent back from {topic}.dlq"
    assert content(servers, topic) == []
    assert f"{topic}.dlq.replayed" not in quire("topics", "list", servers=servers).stdout.decode()
    assert replay(servers, topic)["sent"] == 3


def test_replayed_letters_are_replayed_again_only_on_request(servers: str, topic: str) -> None:
    bury(servers, topic, {}, {})
    assert replay(servers, topic)["sent"] == 2
    again = replay(servers, topic, "--from-beginning")
    assert (again["sent"], again["sent_before"], again["passed_over"]) == (0, 2, 0)
    assert replay(servers, topic, "--again")["sent"] == 2
    assert values(servers, topic) == ["0", "1", "0", "1"]


def test_letters_of_deleted_topics_do_not_block_the_others(servers: str, topic: str) -> None:
    bury(servers, topic, {}, {"topic": f"{topic}-deleted"}, {"topic": "no/topic"}, {"offset": b"9" * 5000}, {})
    summary = replay(servers, topic)
    assert (summary["sent"], summary["passed_over"]) == (2, 3)
    assert values(servers, topic) == ["0", "4"]
    assert f"{topic}-deleted" not in quire("topics", "list", servers=servers).stdout.decode()


def test_records_that_are_no_dead_letters_stay(servers: str, topic: str) -> None:
    bury(servers, topic, {"bare": True})
    done = quire("dlq", "replay", topic, servers=servers)
    assert "1 stay: without the headers of a dead letter" in done.stdout.decode()


def test_a_replay_that_ends_half_way_has_sent_what_it_marked(servers: str, topic: str) -> None:
    """Letters are sent 500 at a time, and the topic does not accept the second transaction."""
    bury(servers, topic, *[{}] * 500, {"value": bytes(50_000)})
    alter(servers, topic, "max.message.bytes=30000")
    assert quire("dlq", "replay", topic, servers=servers).returncode == 1
    assert len(content(servers, topic)) == 500
    alter(servers, topic, "max.message.bytes=1000000")
    summary = replay(servers, topic)
    assert (summary["sent"], summary["sent_before"]) == (1, 500)


def test_a_new_topic_of_the_same_name_has_new_letters_and_old_marks_go(servers: str, topic: str) -> None:
    """Offsets begin at 0 again: the marks of the deleted topic would hide the letters of the new one."""
    bury(servers, topic, {}, {})
    replay(servers, topic)
    assert quire("topics", "delete", f"{topic}.dlq", "--yes", servers=servers).returncode == 0
    assert quire("topics", "create", f"{topic}.dlq", "--partitions", "3", servers=servers).returncode == 0
    bury(servers, topic, {"error": "new"})
    assert counts(servers, topic) == {"new": (1, 1, 0, 0)}
    assert replay(servers, topic)["sent"] == 1
    marks = {record["key"]: record["value"] for record in content(servers, f"{topic}.dlq.replayed")}
    assert set(marks) == {"1-0", "1-1"}
    assert marks["1-0"] is not None and marks["1-1"] is None, "the letter 1-1 is gone"


def test_marks_are_in_a_compacted_topic_and_not_in_a_group_with_lag(servers: str, topic: str) -> None:
    bury(servers, topic, {})
    replay(servers, topic)
    described = quire("topics", "describe", f"{topic}.dlq.replayed", servers=servers).stdout.decode()
    assert "cleanup.policy=compact" in described
    assert b"dlq" not in quire("groups", "list", servers=servers).stdout
