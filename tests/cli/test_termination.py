"""Every command that runs until it is stopped ends on SIGTERM as it does on Ctrl-C, as a process."""

import fcntl
import json
import shutil
import signal
import subprocess
import sys
import termios
from collections.abc import Sequence
from contextlib import AbstractContextManager

import pytest

from quire.testing import Cluster
from tests.cli.command import PATIENCE_S, QUIRE, environment, killed_at_the_end, quire

ENDS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
UNTIL_STOPPED = (
    ("consume", "ends", "--from-beginning", "--follow"),
    ("consume", "ends", "--group", "ends", "--from-beginning", "--follow"),
    ("groups", "describe", "--watch"),
    ("groups", "describe", "--watch", "--json"),
)


@pytest.fixture(scope="module", autouse=True)
def records(servers: str) -> None:
    assert quire("produce", "ends", servers=servers, stdin=b"one\n").returncode == 0


def start(servers: str, command: Sequence[str]) -> AbstractContextManager[subprocess.Popen[bytes]]:
    variables = environment({"QUIRE_BOOTSTRAP": servers})
    pipe = subprocess.PIPE
    return killed_at_the_end(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=variables))


def members(servers: str, group: str) -> list[object]:
    (described,) = json.loads(quire("groups", "describe", group, "--json", servers=servers).stdout)
    found: list[object] = described["members"]
    return found


@pytest.mark.parametrize(("number", "code"), ENDS)
@pytest.mark.parametrize("command", UNTIL_STOPPED, ids=" ".join)
def test_it_ends_without_output_and_the_exit_code_names_the_signal(
    servers: str, command: Sequence[str], number: int, code: int
) -> None:
    group = f"ends-{number}"
    arguments = [group if before == "--group" else each for before, each in zip(("", *command), command, strict=False)]
    with start(servers, [*QUIRE, *arguments]) as process:
        assert process.stdout is not None and process.stdout.readline()
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, err) == (code, b"")
    if "--group" in command:
        assert members(servers, group) == [], "it has left the group"


@pytest.mark.parametrize(("number", "code"), ENDS)
def test_lines_that_produce_has_read_are_written_before_it_ends(servers: str, number: int, code: int) -> None:
    topic = f"read-lines-{number}"
    lines = [b"%07d %s\n" % (line, b"x" * 100) for line in range(50_000)]
    with start(servers, [*QUIRE, "produce", topic, "--compression", "gzip"]) as process:
        assert process.stdin is not None
        process.stdin.write(b"".join(lines))
        process.stdin.flush()
        while unread_bytes(process.stdin.fileno()):
            assert process.poll() is None
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == code
    found = quire("consume", topic, "--from-beginning", servers=servers).stdout.splitlines(keepends=True)
    assert len(found) == len(lines)


def unread_bytes(pipe: int) -> int:
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.skipif(shutil.which("timeout") is None, reason="there is no timeout command")
def test_a_member_that_timeout_stops_leaves_its_group(servers: str) -> None:
    """`timeout` signals the command, and then its whole process group: the command gets SIGTERM twice."""
    consume = [*QUIRE, "consume", "ends", "--group", "timed", "--from-beginning", "--follow"]
    with start(servers, ["timeout", "60", *consume]) as process:
        assert process.stdout is not None and process.stdout.readline() == b"one\n"
        process.send_signal(signal.SIGTERM)  # as when the time is over
        process.communicate(timeout=PATIENCE_S)
    assert members(servers, "timed") == []


@pytest.mark.parametrize(("number", "code"), ENDS)
@pytest.mark.parametrize("ended", [False, True], ids=["input open", "input ended"])
def test_produce_counts_what_a_broker_that_hangs_did_not_take(ended: bool, number: int, code: int) -> None:
    with Cluster() as cluster:
        cluster.create_topic("hangs", 1)
        with start(cluster.bootstrap_servers, [*QUIRE, "produce", "hangs", "--timeout", "600"]) as process:
            assert process.stdin is not None
            process.stdin.write(b"taken\n")
            process.stdin.flush()
            cluster.read_all("hangs", at_least=1)
            cluster.pause()
            process.stdin.write(b"one\ntwo\n")
            process.stdin.flush()
            while unread_bytes(process.stdin.fileno()):
                assert process.poll() is None
            if ended:
                process.stdin.close()
            process.send_signal(number)
            assert process.wait(PATIENCE_S) == code, "it does not wait for the whole time-out"
            assert process.stderr is not None
            err = process.stderr.read()
        cluster.resume()
    assert b"2 records were not delivered and 1 was: the command was stopped" in err
