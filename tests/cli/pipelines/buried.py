"""Dead letters written by the test, and what `quire dlq` did with them, without Spark."""

import json
import uuid
from typing import Any

from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_blocking import BlockingClient
from tests.cli.command import quire


def new_topic(servers: str) -> str:
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
            )
        if transactional_id is not None:
            client.run(producer.commit())
        client.loop.run_until(producer.flush())


def content(servers: str, topic: str) -> list[dict[str, Any]]:
    out = quire("consume", topic, "--from-beginning", "--json", "--read-committed", servers=servers).stdout
    return [json.loads(line) for line in out.splitlines()]


def values(servers: str, topic: str) -> list[str]:
    return [record["value"] for record in content(servers, topic)]


def replay(servers: str, topic: str, *options: str) -> dict[str, Any]:
    result = quire("dlq", "replay", topic, "--json", *options, servers=servers)
    assert result.returncode == 0, result.stderr
    summary: dict[str, Any] = json.loads(result.stdout)
    return summary


def counts(servers: str, topic: str) -> dict[str, tuple[int, int, int, int]]:
    """By error: letters, waiting, sent and passed over."""
    rows = json.loads(quire("dlq", "list", topic, "--json", servers=servers).stdout)
    return {row["error"]: (row["letters"], row["waiting"], row["sent"], row["passed_over"]) for row in rows}
