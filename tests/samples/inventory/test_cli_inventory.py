"""`quire-samples inventory`: view, send, process and check, as processes, against a real node."""

import json
import signal
import socket
import struct
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from quire.client.shell_blocking import BlockingClient
from quire.testing import Cluster
from quire_samples.inventory.check import Archived
from quire_samples.inventory.events import encode_event
from quire_samples.inventory.generator import Sent
from quire_samples.inventory.processor import ProcessorConfig
from quire_samples.inventory.topics import Topics, ensure_topics
from quire_samples.main import samples as root
from tests.cli.command import PATIENCE_S, environment, killed_at_the_end
from tests.samples.command import SAMPLES, samples
from tests.samples.inventory.histories import history
from tests.samples.inventory.running import carry_out, expected, made_commands, own_config, send
from tests.wire.clients import eventually


@pytest.fixture(scope="module")
def client(servers: str) -> Iterator[BlockingClient]:
    with BlockingClient(servers) as opened:
        yield opened


@pytest.fixture(scope="module")
def inventory(client: BlockingClient) -> ProcessorConfig:
    """An inventory with some history, to which the tests add."""
    config = own_config()
    send(client, config.topics, made_commands(500))
    carry_out(client, config, 500)
    return config


class RunningView:
    def __init__(self, servers: str, topic: str) -> None:
        command = [*SAMPLES, "inventory", "view", "--listen", "127.0.0.1:0", "--events", topic, "-b", servers]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("ready "), line
        self.address = line.removeprefix("ready ").strip()

    def get(self, path: str) -> tuple[int, Any]:
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=PATIENCE_S) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def levels(self) -> dict[str, int]:
        return {entry["item"]: entry["level"] for entry in self.get("/items")[1]["items"]}

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, err


@contextmanager
def view(servers: str, topic: str) -> Iterator[RunningView]:
    running = RunningView(servers, topic)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.communicate()


def levels(client: BlockingClient, topics: Topics) -> dict[str, int]:
    return {item: level.level for item, level in expected(client, topics)[0].levels.items()}


def test_the_view_has_the_stock_and_follows_it(
    servers: str, client: BlockingClient, inventory: ProcessorConfig
) -> None:
    topics = inventory.topics
    with view(servers, topics.events) as running:
        assert running.levels() == levels(client, topics)
        item, level = sorted(running.levels().items())[0]
        status, content = running.get(f"/items/{item}")
        assert (status, content["level"]) == (200, level)
        status, health = running.get("/health")
        assert (status, health["status"], health["lag"], sorted(health["offsets"])) == (200, "ok", 0, ["0", "1", "2"])
        assert running.get("/items/no-such")[0] == 404
        before = sum(health["offsets"].values())
        send(client, topics, made_commands(100, seed=2))
        carry_out(client, inventory, 100)
        eventually(lambda: running.levels() == levels(client, topics))
        assert sum(running.get("/health")[1]["offsets"].values()) > before
        assert running.stop() == (0, "")


def test_the_view_reports_that_its_cluster_is_down_and_resumes_when_it_is_back(tmp_path: Path) -> None:
    config = own_config()
    with Cluster(data_dir=tmp_path) as cluster:
        with BlockingClient(cluster.bootstrap_servers) as client:
            send(client, config.topics, made_commands(50))
            carry_out(client, config, 50)
        with view(cluster.bootstrap_servers, config.topics.events) as running:
            known = running.levels()
            cluster.kill()
            eventually(lambda: running.get("/health")[0] == 503)
            assert running.get("/health")[1]["status"] == "unreachable"
            assert running.levels() == known
            cluster.restart()
            with BlockingClient(cluster.bootstrap_servers) as client:
                send(client, config.topics, made_commands(50, seed=2))
                carry_out(client, config, 50)
                now = levels(client, config.topics)
            eventually(lambda: running.levels() == now)
            eventually(lambda: running.get("/health")[0] == 200)
            assert running.stop(signal.SIGINT) == (0, "")


def test_a_view_of_nothing_and_one_on_a_taken_port_say_so_in_a_sentence(
    servers: str, inventory: ProcessorConfig
) -> None:
    missing = samples("inventory", "view", "--listen", "127.0.0.1:0", "--events", "no-such", servers=servers)
    assert (missing.returncode, missing.stderr.count(b"\n")) == (4, 1)
    with view(servers, inventory.topics.events) as running:
        taken = samples("inventory", "view", "--listen", running.address, servers=servers)
    assert taken.returncode == 1
    said = f"{running.address} cannot be used (address already in use); choose another address with --listen HOST:PORT."
    assert taken.stderr.decode() == f"quire-samples: {said}\n"


def test_clients_that_leave_before_the_answer_are_not_logged(servers: str, inventory: ProcessorConfig) -> None:
    with view(servers, inventory.topics.events) as running:
        for _ in range(20):
            with connection(running) as leaving:
                leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, at once
                leaving.sendall(b"GET /items HTTP/1.1\r\n\r\n" * 100)
        assert running.get("/health")[0] == 200
        assert running.stop() == (0, "")


def test_an_item_is_found_by_its_name_as_it_is_typed_and_percent_encoded(servers: str, client: BlockingClient) -> None:
    config = own_config()
    line = {"item": "größe", "quantity": 3}
    send(client, config.topics, [Sent(b"c", json.dumps({"id": "c", "kind": "shipment", "lines": [line]}).encode())])
    carry_out(client, config, 1)
    with view(servers, config.topics.events) as running:
        assert running.get("/items/gr%C3%B6%C3%9Fe")[1]["level"] == 3
        with connection(running) as typed:
            typed.sendall("GET /items/größe HTTP/1.0\r\n\r\n".encode())
            assert typed.makefile("rb").readline() == b"HTTP/1.1 200 OK\r\n"


def connection(running: RunningView) -> socket.socket:
    host, _, port = running.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE_S)


def test_the_check_agrees_with_a_view_rebuilt_and_with_one_that_runs(servers: str, inventory: ProcessorConfig) -> None:
    topic = inventory.topics.events
    rebuilt = samples("inventory", "check", "--events", topic, servers=servers)
    assert (rebuilt.returncode, rebuilt.stderr) == (0, b"")
    assert rebuilt.stdout.endswith(b"view and history agree on every item\n")
    with view(servers, topic) as running:
        asked = samples("inventory", "check", "--events", topic, "--view", running.address, "--json", servers=servers)
    report = json.loads(asked.stdout)
    assert (asked.returncode, report["agrees"], report["events_not_in_lake"]) == (0, True, None)
    assert report["items"] == 20


def tampered(client: BlockingClient, change: Callable[[dict[str, Any]], None]) -> str:
    """An event topic whose last event was tampered with."""
    from quire.client.producer import Producer

    config = own_config()
    client.run(ensure_topics(client.cluster, config.topics))
    producer = Producer(client.cluster)
    client.run(producer.prepare(config.topics.events))
    values = [json.loads(encode_event(event)) for event in history(("pen", 5), ("pen", -2), ("pen", 4))]
    change(values[-1])
    for value in values:
        producer.send(config.topics.events, json.dumps(value).encode(), key=b"pen")
    client.loop.run_until(producer.flush())
    return config.topics.events


def test_the_check_finds_a_deliberate_difference(servers: str, client: BlockingClient) -> None:
    topic = tampered(client, lambda event: event.update(level=8))
    result = samples("inventory", "check", "--events", topic, servers=servers)
    assert (result.returncode, result.stderr) == (1, b"quire-samples: 2 differences found.\n")
    out = result.stdout.decode()
    assert "pen: history: event 3 says 8; the changes up to it add up to 7" in out
    assert "pen: the view says 8 after event 3; the history adds up to 7 after event 3" in out


def test_a_lake_of_another_inventory_is_not_said_to_have_all_events(
    servers: str, inventory: ProcessorConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {f"item-{number:04d}": Archived(1, 999, 999, 999, 1) for number in range(50)}
    monkeypatch.setattr("quire_samples.inventory.cli.check.read_lake", lambda path, may_be_missing: other)
    arguments = ["inventory", "check", "--events", inventory.topics.events, "--lake", "other", "-b", servers]
    result = CliRunner().invoke(root, arguments)
    assert result.exit_code == 1
    assert "differences found" in result.stderr
    assert "has them all" not in result.stdout


def test_the_check_says_what_it_cannot_reach(servers: str, inventory: ProcessorConfig, tmp_path: Path) -> None:
    topic = inventory.topics.events
    for options, code, said in (
        (["--view", "127.0.0.1:1"], 3, "no inventory view answers at http://127.0.0.1:1/items"),
        (["--view", servers], 3, f"no inventory view answers at http://{servers}/items"),
        (["--view", "127.0.0.1:no-port"], 2, "127.0.0.1:no-port is not the address of a view"),
        (["--lake", str(tmp_path / "none")], 4, "there is no Delta table at"),
    ):
        result = samples("inventory", "check", "--events", topic, *options, servers=servers)
        assert (result.returncode, result.stderr.count(b"\n")) == (code, 1)
        assert said in result.stderr.decode()
    with view(servers, topic) as running:
        result = samples("inventory", "check", "--view", running.address, servers=servers)
    assert (result.returncode, f"is of topic {topic}" in result.stderr.decode()) == (1, True)


def test_the_demo_sends_commands_that_are_mostly_carried_out(servers: str, client: BlockingClient) -> None:
    config = ProcessorConfig(name="demo")
    sent = samples("inventory", "send", "--commands", "1000", "--rate", "0", "--items", "30", "--json", servers=servers)
    assert (sent.returncode, json.loads(sent.stdout)["commands"]) == (0, 1000)
    tally = carry_out(client, config, 1000).tally
    assert tally.commands == 1000
    assert 0 < tally.refusals.total() < 500
    again = samples(
        "inventory", "send", "--commands", "1000", "--rate", "0", "--items", "30", "--json", servers=servers
    )
    assert again.returncode == 0
    assert carry_out(client, config, 1000).tally.refusals["duplicate"] < 100, "two runs do not share their ids"


def test_ctrl_c_ends_the_demo_with_everything_sent_and_counted(servers: str, client: BlockingClient) -> None:
    config = own_config()
    client.run(ensure_topics(client.cluster, config.topics))
    command = [
        *SAMPLES,
        "inventory",
        "send",
        "--rate",
        "500",
        "--topic",
        config.topics.commands,
        "--json",
        "-b",
        servers,
    ]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    with killed_at_the_end(started) as process:
        carry_out(client, config, 50)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert json.loads(out)["commands"] == sum(len(group) for group in _outcomes(client, config.topics))


def _outcomes(client: BlockingClient, topics: Topics) -> list[list[object]]:
    _, events, refusals = expected(client, topics)
    return [[*{event.source: None for event in events}], [*refusals]]
