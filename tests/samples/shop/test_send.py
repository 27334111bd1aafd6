"""`quire-samples shop send`, as a process, against a real node."""

import json
import signal
import subprocess
from collections import Counter
from datetime import datetime

from quire.client.shell_blocking import BlockingClient
from quire_samples.shop.events import TOPICS
from quire_samples.shop.send import last_event_ms
from tests.cli.command import PATIENCE_S, environment, killed_at_the_end, quire
from tests.samples.command import SAMPLES, samples


def records(servers: str) -> list[dict[str, str]]:
    out = b"".join(
        quire("consume", topic, "--from-beginning", "--json", servers=servers).stdout for topic in TOPICS
    ).splitlines()
    return [json.loads(line) for line in out]


def test_it_sends_as_many_events_as_requested_counts_their_kinds_and_keeps_the_rate(servers: str) -> None:
    first = samples("shop", "send", "--events", "3000", "--rate", "0", "--json", servers=servers)
    assert first.returncode == 0, first.stderr
    summary = json.loads(first.stdout)
    assert summary["events"] == sum(summary["kinds"].values()) == 3000
    assert all(summary["kinds"].values())
    assert len(records(servers)) == 3000
    with BlockingClient(servers) as client:
        before_ms = last_event_ms(client, TOPICS)
    second = json.loads(samples("shop", "send", "--events", "10", "--rate", "0", "--json", servers=servers).stdout)
    from_ms = datetime.fromisoformat(second["from"]).timestamp() * 1000
    assert from_ms > before_ms, "the shop's time continues after its last event"
    with BlockingClient(servers) as client:
        assert last_event_ms(client, TOPICS) >= before_ms
    keys = Counter(record["key"] for record in records(servers))
    assert len(keys) > 100


def test_ctrl_c_and_sigterm_end_it_with_everything_delivered_and_counted(servers: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        before = len(records(servers))
        command = [*SAMPLES, "shop", "send", "--rate", "2000", "--json", "-b", servers]
        started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        with killed_at_the_end(started) as process:
            while len(records(servers)) == before:
                assert process.poll() is None
            process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, err
        assert json.loads(out)["events"] == len(records(servers)) - before


def test_an_unreachable_broker_is_reported_in_a_sentence() -> None:
    result = samples("shop", "send", "--timeout", "1", servers="127.0.0.1:1")
    assert result.returncode == 3
    assert result.stderr.count(b"\n") == 1
