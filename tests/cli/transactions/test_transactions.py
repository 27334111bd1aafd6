"""`quire transactions` with transactions of confluent-kafka's, and one that hangs."""

import json
from typing import Any

import confluent_kafka
import pytest

from tests.cli.command import quire


def shown(servers: str, *arguments: str) -> Any:
    result = quire("transactions", *arguments, "--json", servers=servers)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def created(servers: str, topic: str, partitions: int = 1) -> str:
    result = quire("topics", "create", topic, "-p", str(partitions), servers=servers)
    assert result.returncode == 0, result.stderr
    return topic


def begun(servers: str, name: str, topic: str, *partitions: int) -> confluent_kafka.Producer:
    """A producer with an open transaction that has one record in each of these partitions."""
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in partitions:
        producer.produce(topic, b"open", partition=partition)
    assert producer.flush(30) == 0
    return producer


def read_committed(servers: str, topic: str) -> list[str]:
    result = quire("consume", topic, "--from-beginning", "--read-committed", servers=servers)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode().splitlines()


def test_a_transaction_is_listed_and_described_while_it_is_open_and_after(servers: str) -> None:
    topic = created(servers, "described", 3)
    producer = begun(servers, "copier", topic, 0, 2)
    listed = {found["name"]: found for found in shown(servers, "list", "--state", "ongoing")}
    (described,) = shown(servers, "describe", "copier")
    text = quire("transactions", "describe", "copier", servers=servers).stdout.decode().splitlines()
    assert listed["copier"]["producer_id"] == described["producer_id"]
    assert described["state"] == "Ongoing"
    assert described["partitions"] == {topic: [0, 2]}
    assert described["timeout_ms"] == 60_000
    assert 0 <= described["age_s"] < 60
    assert text[0].startswith("transactional id copier  Ongoing for ")
    assert [line.split() for line in text[1:]] == [["TOPIC", "PARTITIONS"], [topic, "0,2"]]
    producer.commit_transaction(30)
    assert "copier" not in [found["name"] for found in shown(servers, "list", "--state", "ongoing")]
    (ended,) = shown(servers, "describe", "copier")
    assert (ended["state"], ended["partitions"], ended["age_s"]) == ("CompleteCommit", {}, None)


def test_transactions_are_listed_by_name_producer_and_age(servers: str) -> None:
    topic = created(servers, "narrowed")
    producers = [begun(servers, name, topic, 0) for name in ("narrow-1", "narrow-2", "wide-1")]
    narrow = shown(servers, "list", "--pattern", "narrow-.*")
    assert [found["name"] for found in narrow] == ["narrow-1", "narrow-2"]
    (found,) = shown(servers, "list", "--producer-id", str(narrow[1]["producer_id"]))
    assert found["name"] == "narrow-2"
    assert shown(servers, "list", "--longer-than", "3600") == []
    table = quire("transactions", "list", "--pattern", "wide-1", servers=servers).stdout.decode().splitlines()
    assert table[0].split() == ["NAME", "STATE", "PRODUCER", "ID", "COORDINATOR"]
    assert table[1].split()[:2] == ["wide-1", "Ongoing"]
    none = quire("transactions", "list", "--pattern", "no-such", servers=servers)
    assert (none.returncode, none.stderr) == (0, b"No transaction matches.\n")
    for producer in producers:
        producer.abort_transaction(30)


def test_partitions_know_their_producers_and_where_a_transaction_starts(servers: str) -> None:
    topic = created(servers, "producers", 2)
    quire("produce", topic, "-p", "1", servers=servers, stdin=b"a\nb\nc\n")
    producer = begun(servers, "known", topic, 1)
    (described,) = shown(servers, "describe", "known")
    of_it = [p for p in shown(servers, "describe-producers", topic) if p["producer_id"] == described["producer_id"]]
    assert [(p["partition"], p["start_offset"], p["last_sequence"]) for p in of_it] == [(1, 3, 0)]
    producer.commit_transaction(30)
    of_all = shown(servers, "describe-producers", f"{topic}:1")
    assert {p["start_offset"] for p in of_all} == {None}
    empty = quire("transactions", "describe-producers", f"{topic}:0", servers=servers)
    assert (empty.returncode, empty.stderr) == (0, b"No producer with an id has written recently.\n")


def test_a_transaction_that_is_under_way_is_aborted_only_by_force(servers: str) -> None:
    topic = created(servers, "forced")
    producer = begun(servers, "under-way", topic, 0)
    assert shown(servers, "find-hanging", topic, "--older-than", "0") == []
    abort = ("transactions", "abort", topic, "-p", "0", "--start-offset", "0")
    refused = quire(*abort, "--yes", servers=servers)
    assert refused.returncode == 1
    assert "does not hang: under-way has it open (Ongoing)" in refused.stderr.decode()
    assert quire(*abort, "--force", "--json", servers=servers).returncode == 0
    assert shown(servers, "describe-producers", topic)[0]["start_offset"] is None
    producer.abort_transaction(30)
    assert read_committed(servers, topic) == []


def test_a_reader_that_is_blocked_by_a_transaction_learns_the_reason(servers: str) -> None:
    topic = created(servers, "unseen", 1)
    consume = ("consume", topic, "--from-beginning", "--read-committed")
    assert quire(*consume, servers=servers).stderr == b""
    producer = begun(servers, "hides", topic, 0)
    assert "`quire transactions list` shows which are open" in quire(*consume, servers=servers).stderr.decode()
    producer.abort_transaction(30)
    assert "belong to aborted transactions" in quire(*consume, servers=servers).stderr.decode()


def test_a_transactional_id_is_terminated_as_a_whole_and_its_producer_fenced(servers: str) -> None:
    topic = created(servers, "terminated", 2)
    producer = begun(servers, "stuck", topic, 0, 1)
    done = quire("transactions", "force-terminate", "stuck", servers=servers)
    assert (done.returncode, done.stdout) == (0, b"stuck: its transaction is aborted and its producer fenced\n")
    assert {p["start_offset"] for p in shown(servers, "describe-producers", topic)} == {None}
    assert read_committed(servers, topic) == []
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        producer.commit_transaction(30)
    assert caught.value.args[0].code() == confluent_kafka.KafkaError._FENCED
    again = quire("transactions", "force-terminate", "stuck", "--json", servers=servers)
    assert json.loads(again.stdout)["was"] in ("CompleteAbort", "Empty")


def test_a_missing_transaction_is_exit_code_4(servers: str) -> None:
    topic = created(servers, "quiet")
    for arguments in (
        ("describe", "no-such-id"),
        ("force-terminate", "no-such-id"),
        ("abort", topic, "-p", "0", "--start-offset", "0"),
        ("abort", topic, "-p", "9", "--start-offset", "0"),
        ("abort", "no-such-topic", "-p", "0", "--start-offset", "0"),
        ("describe-producers", "no-such-topic"),
        ("find-hanging", "no-such-topic"),
    ):
        result = quire("transactions", *arguments, servers=servers)
        assert result.returncode == 4, (arguments, result.stderr)
        assert result.stderr.decode().count("\n") == 1


def test_aborting_by_a_transactional_id_is_pointed_to_the_command_for_it() -> None:
    result = quire("transactions", "abort", "copier")
    assert result.returncode == 2
    assert "`quire transactions force-terminate copier`" in " ".join(result.stderr.decode().split())
