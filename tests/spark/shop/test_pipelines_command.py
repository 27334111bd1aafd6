"""`quire pipelines`, as processes: runs, shows, stops and restarts a custom pipeline."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from quire.testing import Cluster
from tests.cli.command import QUIRE, environment, killed_at_the_end, quire
from tests.spark.conftest import ROOT, spark_environment

PATIENCE_S = 240
FILE = str(ROOT / "examples" / "big_orders" / "big_orders.yaml")

SLOW = """
import time
from pathlib import Path

from pyspark.sql import functions as F

HERE = Path(__file__).parent


@F.udf("string")
def slowly(value):
    (HERE / "begun").touch()
    while not (HERE / "go-on").exists():
        time.sleep(0.01)
    return value


def job(records):
    return records.select(slowly(F.col("value").cast("string")).alias("value"))
"""


def wait_until(condition: Callable[[], object], process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline


def test_a_pipeline_is_run_inspected_stopped_and_restarted(fresh_quire_cluster: Cluster, tmp_path: Path) -> None:
    servers = fresh_quire_cluster.bootstrap_servers
    state = ["--state", str(tmp_path)]
    variables = environment(spark_environment())

    def command(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
        words = [*QUIRE, "pipelines", *arguments, *state]
        brokers = {"QUIRE_BOOTSTRAP": servers}
        return subprocess.run(words, capture_output=True, timeout=PATIENCE_S, env=variables | brokers)

    def status() -> dict[str, Any]:
        (said,) = json.loads(command("status", FILE, "--json").stdout)
        assert isinstance(said, dict)
        return said

    def values(topic: str) -> list[bytes]:
        return quire("consume", topic, "--from-beginning", "--read-committed", servers=servers).stdout.splitlines()

    orders = b'{"customer": "anna", "amount_cents": 12000}\n{"customer": "bert", "amount_cents": 300}\nno order\n'
    assert quire("produce", "orders", servers=servers, stdin=orders).returncode == 0
    assert not status()["running"]
    started = subprocess.Popen(
        [*QUIRE, "pipelines", "run", FILE, *state, "-b", servers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=variables,
    )
    with killed_at_the_end(started) as process:
        wait_until(lambda: values("big_orders") and values("orders.dlq"), process)
        wait_until(lambda: [query["rows"] for query in status().get("queries", [])] == [3], process)
        said = status()
        assert said["running"] and said["pid"] == process.pid
        assert said["queries"][0]["lag"] == 0
        assert said["queries"][0]["counts"] == {"dead_letters": 1}
        assert b"runs already in process" in command("run", FILE, "-b", servers).stderr
        assert b"stop it first" in command("reset", FILE, "--yes").stderr
        assert b"running" in command("status", FILE).stdout

        stopped = command("stop", FILE)
        assert stopped.stdout == b"big-orders: stopped\n"
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, b"")
    assert b"choose" in out
    assert values("big_orders") == [b'{"customer":"anna","amount_cents":12000}']
    assert values("orders.dlq") == [b"no order"]
    assert b"was not running" in command("stop", FILE).stdout

    checked = command("run", FILE, "--dry-run", "-b", servers)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert b"continues from its checkpoint, 0 behind" in checked.stdout

    assert command("reset", FILE).returncode == 2
    gone = command("reset", FILE, "--yes", "--results", "-b", servers)
    assert b"checkpoints/choose" in gone.stdout and b"deleted topic big_orders" in gone.stdout
    assert b"orders" in quire("topics", "list", servers=servers).stdout
    assert "queries" not in status()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_kill_reach_the_whole_process_group_and_the_current_batch_is_still_finished(
    fresh_quire_cluster: Cluster, tmp_path: Path, number: int
) -> None:
    servers = fresh_quire_cluster.bootstrap_servers
    (tmp_path / "slow_job.py").write_text(SLOW)
    query = "{job: slow_job:job, source: {subscribe: in, startingOffsets: earliest}, sink: {format: quire, topic: out}}"
    (tmp_path / "slow.yaml").write_text(f"name: slow\ntopics: {{in: {{}}, out: {{}}}}\nqueries: {{one: {query}}}\n")
    assert quire("produce", "in", servers=servers, stdin=b"a record\n").returncode == 0
    started = subprocess.Popen(
        [*QUIRE, "pipelines", "run", str(tmp_path / "slow.yaml"), "--state", str(tmp_path), "-q", "-b", servers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(spark_environment()),
        start_new_session=True,
    )
    with killed_at_the_end(started) as process:
        wait_until((tmp_path / "begun").exists, process)
        os.killpg(process.pid, number)
        (tmp_path / "go-on").touch()
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (0, b"", b"")
    assert quire("consume", "out", "--from-beginning", servers=servers).stdout == b"a record\n"
    assert os.listdir(tmp_path / "slow" / "checkpoints" / "one" / "commits"), "the batch came to its end"


def spark_child(process: "subprocess.Popen[bytes]") -> int | None:
    """The process that becomes Spark's Java: the child that leads its own session."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in map(int, children):
        with suppress(ProcessLookupError):  # `java -version`, which has ended since
            if os.getsid(child) == child:
                return child
    return None


def alive(group: int) -> list[str]:
    """The processes of a group, except those that have ended and wait for their parent."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            name, _, rest = path.read_text().rpartition(")")
            state, _, its_group = rest.split()[:3]
            if int(its_group) == group and state not in "ZX":
                found.append(name)
    return found


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_before_spark_is_up_ends_the_command_and_spark_at_once(
    fresh_quire_cluster: Cluster, tmp_path: Path, number: int, code: int
) -> None:
    servers = fresh_quire_cluster.bootstrap_servers
    started = subprocess.Popen(
        [*QUIRE, "pipelines", "run", FILE, "--state", str(tmp_path), "-b", servers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(spark_environment()),
        start_new_session=True,
    )
    with killed_at_the_end(started) as process:
        wait_until(lambda: spark_child(process), process)
        spark = spark_child(process)
        assert spark is not None
        os.killpg(process.pid, number)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (code, b"Starting Spark ...\n", b"")
    assert not alive(spark)
    assert b"not running" in quire("pipelines", "stop", FILE, "--state", str(tmp_path)).stdout


def test_names_and_files_that_are_wrong_are_answered_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("name: mine\nqueries: {one: {job: a:b, sink: {format: quire}, sorce: {}}}")
    (tmp_path / "empty").mkdir()
    for command in ("list", "status", "stop"):
        nothing = quire("pipelines", command, "--folder", str(tmp_path / "empty"))
        assert (nothing.returncode, nothing.stdout) == (0, b"")
        assert b"There are no pipelines in" in nothing.stderr and b"--folder" in nothing.stderr
        nowhere = quire("pipelines", command, "--folder", str(tmp_path / "nowhere"))
        assert (nowhere.returncode, nowhere.stderr.endswith(b"nowhere does not exist.\n")) == (4, True)
    for words in (["run"], ["status"], ["stop"], ["reset", "--yes"]):
        no_file = quire("pipelines", *words, str(tmp_path / "nope.yaml"))
        assert (no_file.returncode, no_file.stderr.endswith(b"nope.yaml does not exist.\n")) == (4, True)
    folder = str(tmp_path)
    assert quire("pipelines", "list", "--folder", folder).stderr.endswith(b"did you mean 'source'?\n")
    missing = quire("pipelines", "run", "shop", "--folder", str(tmp_path / "empty"))
    assert missing.returncode == 4
    assert b"there is no pipeline shop; " in missing.stderr and b"empty has no pipelines" in missing.stderr
    near = quire("pipelines", "status", "shopp", "--folder", str(ROOT / "pipelines"))
    assert b"did you mean shop?" in near.stderr
    assert b"shop" in quire("pipelines", "list", "--folder", str(ROOT / "pipelines")).stdout
    nobody = quire(
        "pipelines", "run", FILE, "--state", str(tmp_path / "state"), "--timeout", "1", servers="127.0.0.1:1"
    )
    assert nobody.returncode == 3, "reported before Spark is started"
