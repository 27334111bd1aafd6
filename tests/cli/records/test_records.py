"""`quire produce` and `quire consume` against a real node."""

import json
import os
import signal
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.cli.command import PATIENCE_S, QUIRE, environment, killed_at_the_end, quire


def consume(servers: str, topic: str, *arguments: str) -> list[str]:
    result = quire("consume", topic, *arguments, servers=servers)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode().splitlines()


def produce(servers: str, topic: str, lines: str, *arguments: str) -> None:
    result = quire("produce", topic, *arguments, servers=servers, stdin=lines.encode())
    assert result.returncode == 0, result.stderr


def test_produced_lines_are_consumed(servers: str) -> None:
    produce(servers, "lines", "one\n\nthree without an end")
    assert sorted(consume(servers, "lines", "--from-beginning")) == ["", "one", "three without an end"]


def test_the_summary_goes_to_standard_error_or_as_json_to_standard_output(servers: str) -> None:
    quire("topics", "create", "summary", servers=servers)
    plain = quire("produce", "summary", servers=servers, stdin=b"a\nb\n")
    assert plain.stdout == b"" and plain.stderr.startswith(b"2 records in ")
    told = quire("produce", "summary", "--json", servers=servers, stdin=b"a\n")
    assert json.loads(told.stdout)["records"] == 1
    assert quire("produce", "summary", "--quiet", servers=servers, stdin=b"a\n").stderr == b""


def test_a_topic_that_writing_creates_is_named_once(servers: str) -> None:
    for first in (True, False):
        written = quire("produce", "ordres", "--json", servers=servers, stdin=b"a\n")
        assert written.stderr == (b"ordres: created\n" if first else b"")
        assert json.loads(written.stdout)["created"] is first
    assert quire("produce", "ordres-quietly", "--quiet", servers=servers, stdin=b"a\n").stderr == b""


def test_nothing_to_write_is_nothing_written(servers: str) -> None:
    quire("topics", "create", "nothing-written", servers=servers)
    command = [*QUIRE, "produce", "nothing-written"]
    variables = environment({"QUIRE_BOOTSTRAP": servers})
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=variables, timeout=PATIENCE_S)
    assert done.returncode == 0 and done.stderr.startswith(b"0 records")
    closed = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", *command], capture_output=True, env=variables)
    assert closed.returncode == 2 and b"standard input is closed" in closed.stderr


def test_keys_headers_nulls_and_partition_arrive(servers: str) -> None:
    produce(
        servers, "full", "k:v\nNULL:NULL\n", "-k", ":", "--null-marker", "NULL", "-H", "h=x=y", "-H", "e=", "-p", "2"
    )
    first, second = (json.loads(line) for line in consume(servers, "full", "--from-beginning", "--format", "json"))
    assert (first["key"], first["value"], first["partition"], first["offset"]) == ("k", "v", 2, 0)
    assert first["headers"] == [{"name": "h", "value": "x=y"}, {"name": "e", "value": ""}]
    assert (second["key"], second["value"]) == (None, None)


def test_a_line_without_the_separator_is_named_and_everything_before_it_is_written(
    servers: str, tmp_path: Path
) -> None:
    file = tmp_path / "keyed.txt"
    file.write_text("".join(f"key:{number}\n" for number in range(60_000)) + "plain\nkey:after\n")
    result = quire("produce", "keyed", "--file", str(file), "-k", ":", servers=servers)
    assert result.returncode == 1
    sentence = f"{file} line 60001: no ':' after a key in 'plain'; 60000 records before it were written."
    assert result.stderr.decode() == f"keyed: created\nquire: {sentence}\n"
    assert len(consume(servers, "keyed", "--from-beginning")) == 60_000


def test_a_line_of_standard_input_without_the_separator_is_named_too(servers: str) -> None:
    result = quire("produce", "no-separator", "-k", ":", servers=servers, stdin=b"a:b\nplain\n")
    assert result.returncode == 1
    assert "line 2 of standard input: no ':'" in result.stderr.decode()
    assert "1 record before it was written" in result.stderr.decode()
    assert consume(servers, "no-separator", "--from-beginning") == ["b"]


def test_carriage_returns_of_a_windows_file_are_removed(servers: str) -> None:
    quire("topics", "create", "windows", "-p", "1", servers=servers)
    produce(servers, "windows", "a\r\nb\r\n")
    assert quire("consume", "windows", "--from-beginning", servers=servers).stdout == b"a\nb\n"


def test_a_missing_partition_is_exit_code_4(servers: str) -> None:
    result = quire("produce", "partitions-of-this", "-p", "9", servers=servers, stdin=b"a\n")
    assert result.returncode == 4
    assert "no partition 9, only 0 to 2" in result.stderr.decode()


def test_a_name_that_no_topic_can_have_is_explained(servers: str) -> None:
    for command in ("produce", "consume"):
        result = quire(command, "bad topic", servers=servers, stdin=b"a\n")
        assert result.returncode == 1, command
        assert "ASCII letters, digits" in result.stderr.decode(), command


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_is_read_back(servers: str, compression: str) -> None:
    topic = f"compressed-{compression}"
    lines = [f"line {number} " + "x" * 50 for number in range(2000)]
    produce(servers, topic, "\n".join(lines), "-z", compression)
    assert sorted(consume(servers, topic, "--from-beginning")) == sorted(lines)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement_delivers(servers: str, acks: str) -> None:
    produce(servers, f"acks-{acks}", "a\nb\nc\n", "--acks", acks)
    assert len(consume(servers, f"acks-{acks}", "--from-beginning")) == 3


def test_a_large_file_is_written_whole_and_in_order_per_partition(servers: str, tmp_path: Path) -> None:
    file = tmp_path / "large.txt"
    file.write_text("".join(f"{number:07d}\n" for number in range(100_000)))
    result = quire("produce", "large", "--file", str(file), servers=servers)
    assert result.returncode == 0 and b"100,000 records" in result.stderr
    parts: dict[str, list[str]] = {}
    for line in consume(servers, "large", "--from-beginning", "--verbose"):
        partition, _, _, _, value = line.split("\t")
        parts.setdefault(partition, []).append(value)
    # Batches without keys go to random partitions, but no partition may lose or reorder records.
    assert all(values == sorted(values) for values in parts.values())
    assert sorted(value for values in parts.values() for value in values) == file.read_text().split()


def test_a_record_the_topic_does_not_take_is_an_error_with_advice(servers: str) -> None:
    quire("topics", "create", "narrow", "-s", "max.message.bytes=1000", servers=servers)
    result = quire("produce", "narrow", servers=servers, stdin=b"x" * 5000)
    assert result.returncode == 1
    assert "max.message.bytes" in result.stderr.decode()
    assert "1 record was not delivered" in result.stderr.decode()


def test_reading_starts_at_offsets_times_and_counts_from_the_end(servers: str) -> None:
    quire("topics", "create", "starts", "-p", "1", servers=servers)
    produce(servers, "starts", "a\nb\nc\nd\n")
    assert consume(servers, "starts", "--from-offset", "2") == ["c", "d"]
    assert consume(servers, "starts", "--from-offset", "-1") == ["d"]
    assert consume(servers, "starts", "--from-offset", "-100") == ["a", "b", "c", "d"]
    assert consume(servers, "starts", "--from-timestamp", "0") == ["a", "b", "c", "d"]
    assert consume(servers, "starts", "--from-timestamp", "2100-01-01") == []
    assert consume(servers, "starts", "--from-beginning", "--count", "2") == ["a", "b"]
    beyond = quire("consume", "starts", "--from-offset", "99", servers=servers)
    assert beyond.returncode == 1 and "offset 99" in beyond.stderr.decode()


def test_one_offset_for_several_partitions_begins_as_near_as_each_can(servers: str) -> None:
    produce(servers, "uneven", "a\nb\nc\n", "-p", "0")
    produce(servers, "uneven", "x\n", "-p", "1")
    assert sorted(consume(servers, "uneven", "--from-offset", "1")) == ["b", "c"]
    assert sorted(consume(servers, "uneven", "--from-offset", "-1")) == ["c", "x"]


def test_partitions_can_be_chosen(servers: str) -> None:
    for partition in ("0", "1", "2"):
        produce(servers, "chosen", f"in {partition}\n", "-p", partition)
    assert sorted(consume(servers, "chosen", "--from-beginning", "-p", "0", "-p", "2")) == ["in 0", "in 2"]
    assert quire("consume", "chosen", "-p", "9", "--from-beginning", servers=servers).returncode == 4


def test_filters_work_on_key_header_and_json(servers: str) -> None:
    orders = [{"id": number, "user": {"age": 20 + number}, "tags": ["even"] * (number % 2 == 0)} for number in range(6)]
    produce(servers, "filters", "".join(f"k{order['id']}|{json.dumps(order)}\n" for order in orders), "-k", "|")
    produce(servers, "filters", "not json\n", "-H", "source=test")

    def ids(*conditions: str) -> list[int]:
        found = consume(servers, "filters", "--from-beginning", *conditions)
        return sorted(json.loads(line)["id"] for line in found)

    assert ids("--key", "k1", "--key", "k4") == [1, 4]
    assert ids("--where", "user.age>=24") == [4, 5]
    assert ids("--where", "tags contains even", "--where", "id!=0") == [2, 4]
    assert consume(servers, "filters", "--from-beginning", "--header", "source=test") == ["not json"]
    assert consume(servers, "filters", "--from-beginning", "--header", "source") == ["not json"]
    nothing = quire("consume", "filters", "--from-beginning", "--where", "id=99", servers=servers)
    assert (nothing.returncode, nothing.stdout) == (0, b"")
    assert nothing.stderr == b"0 of 7 records matched (1 were not JSON)\n"
    nobody = quire("consume", "filters", "--from-beginning", "--key", "nobody", servers=servers)
    assert nobody.stderr == b"0 of 7 records matched\n"


def test_hex_shows_bytes(servers: str) -> None:
    produce(servers, "hex", "k:v\n", "-k", ":", "-p", "0")
    assert consume(servers, "hex", "--from-beginning", "--format", "hex") == ["0\t0\t6b\t76"]


def test_json_is_a_format_and_an_option_as_everywhere(servers: str) -> None:
    produce(servers, "json", "v\n", "-p", "0")
    shown = [consume(servers, "json", "--from-beginning", *style) for style in (("--json",), ("--format", "json"))]
    assert shown[0] == shown[1]
    assert json.loads(shown[0][0])["value"] == "v"


def test_without_a_start_and_without_following_it_says_what_to_add(servers: str) -> None:
    produce(servers, "nothing", "a\n")
    result = quire("consume", "nothing", servers=servers)
    assert (result.returncode, result.stdout) == (0, b"")
    assert "--from-beginning" in result.stderr.decode()


def test_an_empty_topic_read_from_the_beginning_ends_at_once(servers: str) -> None:
    quire("topics", "create", "empty", servers=servers)
    assert consume(servers, "empty", "--from-beginning") == []


def test_a_topic_that_does_not_exist_is_not_created_by_reading_it(servers: str) -> None:
    for _ in range(2):
        assert quire("consume", "absent", "--follow", servers=servers).returncode == 4


def follow(servers: str, topic: str, *arguments: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [*QUIRE, "consume", topic, "--follow", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment({"QUIRE_BOOTSTRAP": servers}),
    )
    return killed_at_the_end(process)


def test_following_shows_new_records_of_all_partitions_and_ctrl_c_is_silent(servers: str) -> None:
    produce(servers, "followed", "first\n", "-p", "0")
    with follow(servers, "followed", "--from-beginning") as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"first\n"
        for partition in ("1", "2", "0"):
            produce(servers, "followed", f"to {partition}\n", "-p", partition)
            assert process.stdout.readline() == f"to {partition}\n".encode()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
        assert process.stderr.read() == b""


def test_following_ends_after_a_count(servers: str) -> None:
    produce(servers, "counted", "a\nb\nc\n", "-p", "0")
    with follow(servers, "counted", "--from-beginning", "-n", "2") as process:
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (0, b"a\nb\n")


def test_a_reader_that_closes_the_pipe_ends_the_command_silently(servers: str) -> None:
    produce(servers, "piped", "x" * 1000 + "\n", "-p", "0")
    with follow(servers, "piped", "--from-beginning") as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        produce(servers, "piped", "more\n", "-p", "0")
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == b""


def test_lines_of_a_slow_pipe_are_written_as_they_come(servers: str) -> None:
    quire("topics", "create", "slow", "-p", "1", servers=servers)
    with (
        follow(servers, "slow", "--from-beginning") as reader,
        killed_at_the_end(
            subprocess.Popen(
                [*QUIRE, "produce", "slow", "--quiet"],
                stdin=subprocess.PIPE,
                env=environment({"QUIRE_BOOTSTRAP": servers}),
            )
        ) as writer,
    ):
        assert reader.stdout is not None and writer.stdin is not None
        for line in (b"one\n", b"two\n"):
            os.write(writer.stdin.fileno(), line)
            assert reader.stdout.readline() == line
        writer.stdin.close()
        assert writer.wait(PATIENCE_S) == 0
        reader.send_signal(signal.SIGINT)


def test_values_that_are_json_are_printed_as_json_on_request(servers: str) -> None:
    produce(servers, "json-values", '{"total": 1.50}\nnot JSON\n', "-p", "0")
    first, second = consume(servers, "json-values", "--from-beginning", "--json-values")
    assert '"value": {"total": 1.50}' in first
    assert json.loads(second)["value"] == "not JSON"
    assert json.loads(consume(servers, "json-values", "--from-beginning", "--json")[0])["value"] == '{"total": 1.50}'
