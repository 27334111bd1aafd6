"""`quire start` as a process: its output, its end, and what it refuses."""

import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from quire.protocol.messages.metadata import MetadataResponse
from quire.testing import WireConnection
from tests.cli.command import PATIENCE_S, QUIRE, quire, started
from tests.wire.batches import batch
from tests.wire.raw import produce_request


def test_one_line_says_where_it_serves_and_clients_can_connect_then() -> None:
    with started("--ephemeral") as node:
        assert re.fullmatch(r"ready 127\.0\.0\.1:\d+\n", node.first_line)
        assert quire("topics", "create", "t", servers=node.address).returncode == 0
        code, out, _ = node.stop()
    assert (code, out) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_cleanly_when_asked_to(number: int, tmp_path: Path) -> None:
    with started("--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0") as node:
        code, out, err = node.stop(number)
        assert (code, out) == (0, "")
        assert "Traceback" not in err
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_at_the_very_end_does_not_turn_a_clean_stop_into_a_failure(number: int) -> None:
    with started("--ephemeral") as node:
        process = node.process
        assert process.stderr is not None
        process.send_signal(signal.SIGTERM)
        while not process.stderr.readline().endswith(b"stopped cleanly\n"):
            assert process.poll() is None
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 0


def test_records_are_still_there_after_a_restart(tmp_path: Path) -> None:
    arguments = ("--data", str(tmp_path), "--listen", "127.0.0.1:0")
    with started(*arguments) as node:
        assert quire("produce", "t", servers=node.address, stdin=b"kept\n").returncode == 0
        node.stop()
    with started(*arguments) as node:
        assert quire("consume", "t", "--from-beginning", servers=node.address).stdout == b"kept\n"


def test_ephemeral_data_is_removed_afterwards(tmp_path: Path) -> None:
    with started("--ephemeral", env={"TMPDIR": str(tmp_path)}) as node:
        assert list(tmp_path.iterdir())
        node.stop()
    assert not list(tmp_path.iterdir())


def test_an_ephemeral_node_listens_on_the_given_address() -> None:
    with started("--ephemeral", "--set", "listeners=PLAINTEXT://127.0.0.2:0") as node:
        assert node.address.startswith("127.0.0.2:")
        node.stop()


def test_ephemeral_keeps_data_that_was_given_a_place(tmp_path: Path) -> None:
    with started("--ephemeral", "--data", str(tmp_path / "data")) as node:
        node.stop()
    assert (tmp_path / "data" / "meta.properties").exists()


def test_data_goes_to_quire_data_in_the_current_folder_by_default(tmp_path: Path) -> None:
    with started("--listen", "127.0.0.1:0", cwd=tmp_path) as node:
        node.stop()
    assert (tmp_path / "quire-data" / "meta.properties").exists()


def test_a_port_in_use_is_one_sentence_and_exit_code_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = quire("start", "--data", str(tmp_path / "data"), "--listen", f"127.0.0.1:{port}")
    assert result.returncode == 1
    assert result.stdout == b""
    assert result.stderr.decode().count("\n") == 1
    assert f"port {port} of 127.0.0.1 (for clients) is in use" in result.stderr.decode()
    assert not (tmp_path / "data").exists(), "nothing was touched"


def test_an_address_that_cannot_be_used_is_named_once(tmp_path: Path) -> None:
    result = quire("start", "--data", str(tmp_path / "data"), "--listen", "no-such-host.invalid:9092")
    assert result.returncode == 1
    assert result.stderr.count(b"no-such-host.invalid") == 1
    assert not (tmp_path / "data").exists()


def test_a_port_without_a_host_is_answered_with_both_spellings(tmp_path: Path) -> None:
    result = quire("start", "--data", str(tmp_path / "data"), "--listen", "9092")
    assert result.returncode == 2
    assert "write 127.0.0.1:9092, or :9092 for every interface" in result.stderr.decode()


def test_a_refused_start_leaves_nothing_in_a_foreign_folder(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear reader")
    result = quire("start", "--data", str(tmp_path), "--listen", "127.0.0.1:0")
    assert result.returncode == 1
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_the_controllers_port_in_use_says_that_it_is_the_controllers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listeners = f"listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}"
        result = quire("start", "--data", str(tmp_path / "data"), "--set", listeners)
    assert result.returncode == 1
    assert f"port {port} of 127.0.0.1 (for the controller" in result.stderr.decode()


def test_listening_on_every_interface_prints_the_address_that_clients_get(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    with started(*data, "--listen", ":0") as node:
        assert re.fullmatch(rf"{re.escape(socket.gethostname())}:\d+", node.address)
        node.stop()
    with started(*data, "--listen", ":0", "--set", "advertised.listeners=PLAINTEXT://example.org:7") as node:
        assert node.address == "example.org:7"
        node.stop()


def test_listening_everywhere_works_with_the_option_that_the_error_shows(tmp_path: Path) -> None:
    arguments = ("--data", str(tmp_path), "--listen", "0.0.0.0:0")
    said = quire("start", *arguments).stderr.decode()
    option = said.rpartition(" such as ")[2].rstrip().removesuffix(".").split()
    with started(*arguments, *option) as node:
        assert re.fullmatch(rf"{re.escape(socket.gethostname())}:[1-9]\d*", node.address)
        node.stop()


def test_security_settings_of_a_file_that_have_no_effect_are_named_in_the_log(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("ssl.keystore.location=/keys\n")
    with started("--ephemeral", "--config", str(file)) as node:
        *_, err = node.stop()
    assert f"WARNING quire.config: ssl.keystore.location ({file} line 1) has no effect" in err


def test_the_log_says_what_is_served_and_how_it_ended_in_a_few_lines(tmp_path: Path) -> None:
    arguments = ("--data", str(tmp_path), "--listen", "127.0.0.1:0")
    with started(*arguments) as node:
        assert quire("topics", "create", "t", "-p", "2", servers=node.address).returncode == 0
        node.process.kill()
        node.process.wait()
    with started(*arguments) as node:
        *_, err = node.stop()
    serving = (
        rf"serving {node.address}, data in {re.escape(str(tmp_path))}, 1 topic with 2 partitions, started in \d+ ms"
    )
    assert re.search(serving, err)
    assert err.count("was not stopped cleanly: its 2 logs were checked") == 1
    assert err.endswith("stopped cleanly\n")
    assert "quire.raft" not in err
    with started(*arguments) as node:
        *_, err = node.stop()
    assert "was not stopped cleanly" not in err


def test_a_data_directory_in_use_is_one_sentence_and_exit_code_1(tmp_path: Path) -> None:
    with started("--data", str(tmp_path), "--listen", "127.0.0.1:0"):
        result = quire("start", "--data", str(tmp_path), "--listen", "127.0.0.1:0")
    assert result.returncode == 1
    assert "is in use by another process" in result.stderr.decode()
    assert "Traceback" not in result.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "num.partitions=many"], "num.partitions"),
        (["--set", "num.partition=3"], "num.partitions"),
        (["--set", "listeners=SSL://127.0.0.1:9092"], "SSL, which is not supported yet"),
        (["--set", "node.id=-4"], "--set node.id=-4 is not allowed"),
        (
            ["--listen", "127.0.0.1:0", "--set", "listeners=SASL_PLAINTEXT://127.0.0.1:0"],
            "--listen 127.0.0.1:0 and --set listeners=SASL_PLAINTEXT://127.0.0.1:0 contradict each other",
        ),
        (["--set", "log.dirs=elsewhere"], "and --set log.dirs=elsewhere contradict each other"),
        (["--set", "sasl.enabled.mechanisms=PLAIN"], "--set sasl.enabled.mechanisms has no effect"),
        (
            ["--listen", "0.0.0.0:9092"],
            "clients to connect to 0.0.0.0: set it to an address they can reach, such as --set "
            f"advertised.listeners=PLAINTEXT://{socket.gethostname()}:9092.",
        ),
    ],
)
def test_a_setting_that_cannot_be_is_named(arguments: list[str], words: str, tmp_path: Path) -> None:
    result = quire("start", "--data", str(tmp_path / "data"), *arguments)
    assert result.returncode == 2
    assert words in result.stderr.decode()
    assert result.stderr.decode().count("\n") == 1


def test_settings_made_by_an_option_are_named_after_the_option(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    impossible = quire("start", "--data", str(tmp_path / "file" / "data"), "--listen", "127.0.0.1:0")
    assert "it or a folder above it is a file; change --data." in impossible.stderr.decode()
    assert quire("storage", "format", "--data", str(tmp_path / "five"), "--node-id", "5").returncode == 0
    other = quire("start", "--data", str(tmp_path / "five"), "--listen", "127.0.0.1:0")
    assert "add --set node.id=5 or point --data elsewhere" in other.stderr.decode()


def test_an_error_in_a_file_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# mine\nlog.retention.hours=a week\n")
    result = quire("start", "--config", str(file), "--data", str(tmp_path / "data"))
    assert result.returncode == 2
    assert "line 2" in result.stderr.decode() and "log.retention.hours" in result.stderr.decode()


def test_settings_come_from_the_file_below_the_environment_below_set(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\nlog.retention.hours=1\nlog.segment.bytes=2000000\n")
    env = {"QUIRE_NUM_PARTITIONS": "4", "QUIRE_LOG_RETENTION_HOURS": "2", "QUIRE_BOOTSTRAP": "elsewhere:1"}
    with started("--ephemeral", "--config", str(file), "--set", "num.partitions=6", env=env) as node:
        keys = ("num.partitions", "log.retention.hours", "log.segment.bytes")
        shown = quire("configs", "describe", "broker", "1", *keys, "--json", servers=node.address)
    assert re.findall(r'"value": "(\d+)"', shown.stdout.decode()) == ["2", "2000000", "6"]


def test_a_node_under_control_obeys_lines_and_stops_when_they_end() -> None:
    with started("--ephemeral", "--control-stdin") as node:
        process = node.process
        assert process.stdin is not None and process.stdout is not None
        for line, answer in [
            (b"fail_next Produce NOT_LEADER_OR_FOLLOWER 1\n", b"ok\n"),
            (b"make coffee\n", b"error: 'make coffee' is neither fail_next, delay, uses nor clear\n"),
        ]:
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline() == answer
        process.stdin.close()
        process.stdin = None
        assert process.wait(PATIENCE_S) == 0


def test_control_needs_a_pipe() -> None:
    result = subprocess.run(
        [*QUIRE, "start", "--ephemeral", "--control-stdin"], stdin=subprocess.DEVNULL, capture_output=True
    )
    assert result.returncode == 1
    assert result.stderr == b"quire: --control-stdin needs a pipe on standard input.\n"


def test_a_process_that_was_killed_leaves_a_directory_that_starts_again(tmp_path: Path) -> None:
    arguments = ("--data", str(tmp_path), "--listen", "127.0.0.1:0")
    with started(*arguments) as node:
        assert quire("produce", "t", servers=node.address, stdin=b"a\nb\n").returncode == 0
        node.process.kill()
        node.process.wait()
    with started(*arguments) as node:
        assert quire("consume", "t", "--from-beginning", servers=node.address).stdout.split() == [b"a", b"b"]


def test_standard_output_has_nothing_else_even_at_the_highest_log_level() -> None:
    with started("--ephemeral", "--log-level", "debug") as node:
        quire("produce", "t", servers=node.address, stdin=b"x\n")
        _, out, err = node.stop()
    assert out == ""
    assert err


def test_the_process_is_found_by_python_dash_m_and_by_its_script() -> None:
    script = Path(__import__("sys").executable).with_name("quire")
    result = subprocess.run([script, "--version"], capture_output=True, check=True)
    assert result.stdout.startswith(b"quire ")


def test_client_input_can_neither_forge_a_log_line_nor_fill_the_log() -> None:
    forged = "t\n2026-01-01T00:00:00.000 INFO quire: forged\x1b[2J"
    with started("--ephemeral") as node:
        for _ in range(50):
            with WireConnection(node.address) as connection:
                connection.send(produce_request(forged, batch([b"x"]), acks=0), 9)
                with pytest.raises(ConnectionError):
                    connection.receive(MetadataResponse, 12, 1)
        _, _, err = node.stop()
    lines = err.splitlines()
    assert not any(line.startswith("2026-01-01") or "\x1b" in line for line in lines)
    assert 1 <= sum("forged" in line for line in lines) <= 10


def test_it_serves_although_nothing_reads_its_output() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [*QUIRE, "start", "--ephemeral"]
    process = subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    try:
        assert process.stderr is not None
        assert any("serving 127.0.0.1:" in line for line in process.stderr)
        process.terminate()
        rest = process.stderr.read()
        assert process.wait(PATIENCE_S) == 0, rest
        assert "Traceback" not in rest
    finally:
        process.kill()
        process.wait()


def test_the_first_reader_of_a_new_group_does_not_wait_for_more_members(tmp_path: Path) -> None:
    with started("--data", str(tmp_path), "--listen", "127.0.0.1:0") as node:
        assert quire("produce", "t", servers=node.address, stdin=b"hello\n").returncode == 0
        consumer = Consumer({"bootstrap.servers": node.address, "group.id": "readers", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        try:
            message = consumer.poll(PATIENCE_S)
            assert message is not None and message.value() == b"hello"
        finally:
            consumer.close()
        delay = "group.initial.rebalance.delay.ms"
        shown = quire("configs", "describe", "broker", "1", delay, "--json", servers=node.address)
        assert re.findall(r'"value": "(\d+)"', shown.stdout.decode()) == ["0"], "Kafka's default is 3000"
        node.stop()
