"""`quire dlq list` and `show`, as processes, against a real node."""

import json

import pytest

from tests.cli.command import quire
from tests.cli.pipelines.buried import bury, counts, new_topic, replay


@pytest.fixture
def topic(servers: str) -> str:
    return new_topic(servers)


def test_the_list_counts_letters_by_error_and_by_waiting_sent_and_passed_over(servers: str, topic: str) -> None:
    bury(servers, topic, {"error": "a"}, {"error": "b"}, {"error": "b"})
    replay(servers, topic)
    bury(servers, topic, {"error": "a"}, {"error": "a", "attempt": 3}, {"error": "b", "topic": f"{topic}-gone"})
    assert counts(servers, topic) == {"a": (3, 1, 1, 1), "b": (3, 0, 2, 1)}
    everything = quire("dlq", "list", servers=servers).stdout.decode()
    assert everything.split()[:7] == ["TOPIC", "LETTERS", "WAITING", "SENT", "PASSED", "OVER", "ERROR"]
    assert f"{topic}.dlq " in everything and ".replayed" not in everything


def test_records_that_are_no_dead_letters_are_named(servers: str, topic: str) -> None:
    bury(servers, topic, {"bare": True})
    ((error, found),) = counts(servers, topic).items()
    assert "no header dlq.error" in error and found == (1, 0, 0, 1)


def test_show_prints_the_error_the_origin_and_the_content(servers: str, topic: str) -> None:
    bury(servers, topic, {"error": "rule a does not hold", "value": b"\xff" + b"x" * 200}, {"error": "b"})
    shown = quire("dlq", "show", topic, "--error", "rule", servers=servers).stdout.decode()
    assert f"{topic}.dlq-1 offset 0" in shown and "rule a does not hold" in shown
    assert f"from   {topic}-2 offset 0, attempt 1" in shown
    assert "\\xffxxx" in shown and "(201 bytes)" in shown
    (letter,) = json.loads(quire("dlq", "show", topic, "-n", "1", "--json", servers=servers).stdout)
    assert (letter["from_topic"], letter["partition"], letter["offset"]) == (topic, 2, 0)
    assert letter["position"] == {"topic": f"{topic}.dlq", "partition": 1, "offset": 0}


def test_show_prints_values_that_are_json_as_json(servers: str, topic: str) -> None:
    bury(servers, topic, {"value": b'{"total": 1.50}'}, {"value": b"not JSON"})
    shown = quire("dlq", "show", topic, "--json-values", servers=servers).stdout
    assert b'"value": {"total": 1.50}' in shown, "the number is not rounded"
    assert sorted(str(letter["value"]) for letter in json.loads(shown)) == ["not JSON", "{'total': 1.5}"]
    as_text = json.loads(quire("dlq", "show", topic, "--json", servers=servers).stdout)
    assert sorted(letter["value"] for letter in as_text) == ["not JSON", '{"total": 1.50}']


def test_show_prints_an_empty_list_as_json(servers: str, topic: str) -> None:
    bury(servers, topic, {"error": "a"})
    for option in ("--json", "--json-values"):
        assert quire("dlq", "show", topic, "--error", "never", option, servers=servers).stdout == b"[]\n"


def test_a_topic_that_exists_has_no_dead_letters(servers: str) -> None:
    quire("topics", "create", "unharmed", servers=servers)
    result = quire("dlq", "show", "unharmed", servers=servers)
    assert (result.returncode, result.stderr) == (4, b"quire: unharmed has no dead letters.\n")


def test_a_topic_without_dead_letters_is_exit_code_4(servers: str) -> None:
    for command in (["show"], ["replay"], ["list"], ["replay", "--dry-run"]):
        result = quire("dlq", *command, "nowhere", servers=servers)
        assert result.returncode == 4
        assert b"nowhere.dlq" in result.stderr


def test_every_topic_without_dead_letters_is_named(servers: str) -> None:
    result = quire("dlq", "list", "nowhere", "never", servers=servers)
    assert result.returncode == 4
    assert [line.split()[2] for line in result.stderr.decode().splitlines()] == ["nowhere.dlq", "never.dlq"]
