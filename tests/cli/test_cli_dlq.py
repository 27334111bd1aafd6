"""`quire dlq`, as a process, against a real node. The dead letters here were made by hand; Spark has no part in it."""

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from quire.cli.dlq_reading import places_of
from quire.client.offsets import LATEST, list_offsets
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_blocking import BlockingClient
from tests.cli.command import quire

DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def client(servers: str) -> Iterator[BlockingClient]:
    with BlockingClient(servers) as opened:
        yield opened


@pytest.fixture
def topic(servers: str) -> str:
    """A topic of three partitions and one for its dead letters."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    for created in (name, f"{name}.dlq"):
        assert quire("topics", "create", created, "--partitions", "3", servers=servers).returncode == 0
    return name


def bury(servers: str, topic: str, *letters: dict[str, Any], transactional_id: str | None = None) -> None:
    """Dead letters of partition 2, in one partition of the dead-letter topic so that their order is known."""
    with BlockingClient(servers) as client:
        producer = Producer(client.cluster, ProducerConfig(transactional_id=transactional_id))
        if transactional_id is not None:
            client.run(producer.init_transactions())
            producer.begin()
        client.run(producer.prepare(f"{topic}.dlq"))
        for number, letter in enumerate(letters):
            headers: list[tuple[str, bytes | None]] = [
                ("trace", b"t"),
                ("dlq.error", letter.get("error", "broken").encode()),
                ("dlq.topic", letter.get("topic", topic).encode()),
                ("dlq.partition", b"2"),
                ("dlq.offset", letter.get("offset", b"%d" % number)),
                ("dlq.attempt", b"%d" % letter.get("attempt", 1)),
            ]
            producer.send(
                f"{topic}.dlq",
                letter.get("value", b"%d" % number),
                key=b"key",
                headers=[] if letter.get("bare") else headers,
                partition=1,
                timestamp_ms=letter.get("timestamp_ms"),
            )
        if transactional_id is not None:
            client.run(producer.commit())
        client.loop.run_until(producer.flush())


def content(servers: str, topic: str) -> list[dict[str, Any]]:
    out = quire("consume", topic, "--from-beginning", "--json", "--read-committed", servers=servers).stdout
    return [json.loads(line) for line in out.splitlines()]


def alter(servers: str, topic: str, setting: str) -> None:
    assert quire("topics", "alter", topic, "--set", setting, servers=servers).returncode == 0


def replay(servers: str, topic: str, *options: str) -> dict[str, Any]:
    result = quire("dlq", "replay", topic, "--json", *options, servers=servers)
    assert result.returncode == 0, result.stderr
    summary: dict[str, Any] = json.loads(result.stdout)
    return summary


def test_replaying_sends_each_back_once_to_its_partition_one_attempt_further(servers: str, topic: str) -> None:
    bury(servers, topic, {}, {"value": None}, {"attempt": 2})
    assert replay(servers, topic) == {"topic": f"{topic}.dlq", "sent": 3, "passed_over": 0}
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


def test_after_a_replay_nothing_is_left_to_read_where_letters_came_in_transactions(servers: str, topic: str) -> None:
    bury(servers, topic, {}, {}, transactional_id=topic)
    assert replay(servers, topic)["sent"] == 2
    (group,) = json.loads(quire("groups", "describe", "quire-dlq-replay", "--json", servers=servers).stdout)
    assert [each["lag"] for each in group["partitions"] if each["topic"] == f"{topic}.dlq"] == [0]
    bury(servers, topic, {}, transactional_id=topic)
    assert replay(servers, topic)["sent"] == 1


def test_what_failed_too_often_or_for_another_reason_is_passed_over_until_asked_for_again(
    servers: str, topic: str
) -> None:
    bury(servers, topic, {"error": "rule a does not hold"}, {"error": "rule b does not hold"}, {"attempt": 3})
    assert replay(servers, topic, "--error", "rule a") == {"topic": f"{topic}.dlq", "sent": 1, "passed_over": 2}
    assert replay(servers, topic)["sent"] == 0
    again = replay(servers, topic, "--from-beginning", "--max-attempts", "9")
    assert (again["sent"], again["passed_over"]) == (3, 0)


def test_records_that_are_no_dead_letters_are_named_and_passed_over(servers: str, topic: str) -> None:
    bury(servers, topic, {"bare": True})
    (row,) = json.loads(quire("dlq", "list", topic, "--json", servers=servers).stdout)
    assert "no header dlq.error" in row["error"]
    assert replay(servers, topic)["passed_over"] == 1


def test_letters_of_topics_that_are_gone_do_not_hold_up_the_others(servers: str, topic: str) -> None:
    bury(servers, topic, {}, {"topic": f"{topic}-deleted"}, {"topic": "no/topic"}, {"offset": b"9" * 5000}, {})
    assert replay(servers, topic) == {"topic": f"{topic}.dlq", "sent": 2, "passed_over": 3}
    assert [record["value"] for record in content(servers, topic)] == ["0", "4"]
    assert f"{topic}-deleted" not in quire("topics", "list", servers=servers).stdout.decode()


def test_a_replay_from_the_beginning_that_ends_half_way_does_not_have_the_rest_sent_twice(
    servers: str, topic: str
) -> None:
    """Letters are dealt with 500 at a time, and the topic no longer takes the second transaction."""
    bury(servers, topic, *[{}] * 500, {"value": bytes(50_000)})
    assert replay(servers, topic)["sent"] == 501
    alter(servers, topic, "max.message.bytes=30000")
    assert quire("dlq", "replay", topic, "--from-beginning", servers=servers).returncode == 1
    alter(servers, topic, "max.message.bytes=1000000")
    assert replay(servers, topic)["sent"] == 0


def test_where_earlier_replays_may_have_been_forgotten_old_letters_are_not_sent_until_asked_for(
    servers: str, topic: str
) -> None:
    now_ms = int(time.time() * 1000)
    bury(servers, topic, {"timestamp_ms": now_ms - 8 * DAY_MS}, {})
    refused = quire("dlq", "replay", topic, servers=servers)
    assert (refused.returncode, refused.stderr.count(b"\n")) == (1, 1)
    assert b"older than the 7 days" in refused.stderr and b"--from-beginning" in refused.stderr
    assert content(servers, topic) == []
    advice = refused.stderr.decode().rpartition("`quire ")[2].partition("`")[0]
    assert quire(*advice.split(), servers=servers).returncode == 0
    assert replay(servers, topic)["sent"] == 1, "the one of today"
    assert replay(servers, topic, "--from-beginning")["sent"] == 2


def test_every_replay_keeps_what_was_sent_back_from_being_forgotten(
    servers: str, topic: str, client: BlockingClient
) -> None:
    def committed() -> int:
        places = places_of(client, ["__consumer_offsets"])
        ends = client.run(list_offsets(client.cluster, dict.fromkeys(places, LATEST)))
        return sum(end.offset for end in ends.values())

    bury(servers, topic, {})
    replay(servers, topic)
    before = committed()
    assert replay(servers, topic)["sent"] == 0
    assert committed() > before


def test_the_list_counts_by_error_and_says_what_was_not_sent_back(servers: str, topic: str) -> None:
    bury(servers, topic, {"error": "a"}, {"error": "b"}, {"error": "b"})
    replay(servers, topic)
    bury(servers, topic, {"error": "a"})
    rows = json.loads(quire("dlq", "list", topic, "--json", servers=servers).stdout)
    assert {row["error"]: (row["letters"], row["waiting"]) for row in rows} == {"a": (2, 1), "b": (2, 0)}
    everything = quire("dlq", "list", servers=servers).stdout.decode()
    assert everything.startswith("TOPIC") and f"{topic}.dlq" in everything


def test_show_says_why_where_from_and_what_was_in_it(servers: str, topic: str) -> None:
    bury(servers, topic, {"error": "rule a does not hold", "value": b"\xff" + b"x" * 200}, {"error": "b"})
    shown = quire("dlq", "show", topic, "--error", "rule", servers=servers).stdout.decode()
    assert f"{topic}.dlq-1 offset 0" in shown and "rule a does not hold" in shown
    assert f"from   {topic}-2 offset 0, attempt 1" in shown
    assert "\\xffxxx" in shown and "(201 bytes)" in shown
    (letter,) = json.loads(quire("dlq", "show", topic, "-n", "1", "--json", servers=servers).stdout)
    assert (letter["from_topic"], letter["partition"], letter["offset"]) == (topic, 2, 0)


def test_a_topic_without_dead_letters_is_exit_code_4(servers: str) -> None:
    for command in (["show"], ["replay"], ["list"]):
        result = quire("dlq", *command, "nowhere", servers=servers)
        assert result.returncode == 4
        assert b"nowhere.dlq" in result.stderr
