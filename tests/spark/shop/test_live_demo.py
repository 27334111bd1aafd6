"""`make run`, as a process: everything starts, shows results, and stops in order with totals that add up."""

import re
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

from tests.cli.command import environment, killed_at_the_end
from tests.free_ports import free_cluster_port, free_port
from tests.samples.live.test_broker import nobody_listens
from tests.spark.conftest import ROOT, spark_environment

PATIENCE_S = 400
KILLED = re.compile(
    r"^broker (\d) was killed \(SIGKILL\), which led \d+ partitions?; all had another leader after", re.M
)
SUM = re.compile(r"^([\d,]+) events in = (.*)$", re.MULTILINE)


def start(folder: Path, port: int, *arguments: str) -> "AbstractContextManager[subprocess.Popen[str]]":
    command = [sys.executable, "-m", "quire_samples", "live", "--listen", f"127.0.0.1:{port}", *arguments]
    process = subprocess.Popen(
        [*command, "--folder", str(ROOT / "pipelines")],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(spark_environment()),
    )
    return killed_at_the_end(process)


def test_stopping_before_anything_was_sent_does_not_wait_for_spark(tmp_path: Path) -> None:
    with start(tmp_path, free_port(), "--seconds", "0.1") as process:
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, ""), out
    assert out.endswith("Ctrl-C ends the wait) ...\nStopped before Spark had read anything.\n")


def test_ctrl_c_while_spark_is_starting_does_not_wait_for_it(tmp_path: Path) -> None:
    port = free_port()
    with start(tmp_path, port) as process:
        read_until(process, "Spark is starting")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, ""), out
    assert out.endswith("\nStopped before Spark had read anything.\n") and "Waiting" not in out
    assert not list(tmp_path.glob("quire-pipelines/*/status.json")), "it was not waited for, nor did it come up"
    assert nobody_listens(port)


def read_until(process: "subprocess.Popen[str]", words: str) -> str:
    assert process.stdout is not None
    seen = ""
    deadline = time.monotonic() + PATIENCE_S
    while words not in seen:
        line = process.stdout.readline()
        assert line and time.monotonic() < deadline, seen
        seen += line
    return seen


def number(text: str) -> int:
    return int(text.partition(" ")[0].replace(",", ""))


def check_sum(out: str) -> None:
    found = SUM.search(out)
    assert found is not None, out
    parts = found[2].split(" + ")
    assert [part.partition(" ")[2] for part in parts] == ["counted", "bots", "dead letters", "duplicates", "late"]
    assert number(found[1]) == sum(number(part) for part in parts) > 0


def test_results_come_and_it_ends_with_a_sum_that_adds_up_by_itself_and_soon_after_ctrl_c(tmp_path: Path) -> None:
    port = free_port()
    with start(tmp_path, port, "--rate", "100", "--seconds", "30") as process:
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, ""), out
    check_sum(out)
    assert "generator sent" not in out, "everything that was sent was read"
    assert "view, history and lake agree on every item" in out
    assert "earlier run" not in out
    assert nobody_listens(port)

    with start(tmp_path, port, "--rate", "100") as process:
        seen = read_until(process, "first results")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, ""), seen + out
    assert "earlier run" in seen
    assert "press Ctrl-C again to stop at once" in out
    check_sum(out)
    assert nobody_listens(port)


def test_on_three_nodes_a_broker_is_killed_and_the_sum_still_adds_up(tmp_path: Path) -> None:
    with start(tmp_path, free_cluster_port(3), "--nodes", "3", "--kill", "--rate", "100", "--seconds", "20") as process:
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, ""), out
    killed = KILLED.search(out)
    assert killed is not None, out
    assert f"broker {killed[1]} is back, and in sync" in out
    check_sum(out)
    assert "generator sent" not in out, "everything that was sent was read"
    assert "view, history and lake agree on every item" in out
