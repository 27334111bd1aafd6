"""`python -m benchmarks.first_hour`: how long a new user waits for a first record, test and Spark row.

Each of the three begins with `git clone` of this repository's last commit and a new environment, without pip's cache:

    record    `make broker`, until it shows the first record that it has read
    test      `pip install` in a project of its own, until pytest has passed a test that uses `quire_cluster`
    row       `pip install` with Spark, `quire start`, `quire produce`, until a batch job has printed the row

It prints the seconds of each step, and the processor seconds of its processes, which depend less on other load.
"""

import argparse
import os
import re
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
LISTEN = "127.0.0.1:19092"
ENVIRONMENT = os.environ | {"PIP_NO_CACHE_DIR": "1", "QUIRE_BOOTSTRAP": LISTEN}
A_RECORD = re.compile(rb"^  demo-\d+ @ \d+: ")

TEST = """
from confluent_kafka import Producer


def test_orders_are_sent(quire_cluster):
    producer = Producer({"bootstrap.servers": quire_cluster.bootstrap_servers})
    producer.produce("orders", b"one")
    assert producer.flush(10) == 0
    del producer
    assert [record.value for record in quire_cluster.read_all("orders")] == [b"one"]
"""

JOB = f"""
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("orders").getOrCreate()
orders = spark.read.format("quire").option("kafka.bootstrap.servers", "{LISTEN}").option("subscribe", "orders").load()
print([bytes(row.value).decode() for row in orders.collect()])
"""


class Stopwatch:
    """Prints each step when it ends, and the total."""

    def __init__(self, title: str) -> None:
        print(f"{title} (load {os.getloadavg()[0]:.1f})", flush=True)
        self._began_s = time.monotonic()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began_s, used_s = time.monotonic(), _children_s()
        yield
        show(name, time.monotonic() - began_s, _children_s() - used_s)

    def total(self) -> None:
        print(f"  {'total':<40} {time.monotonic() - self._began_s:7.1f} s", flush=True)


def show(name: str, took_s: float, used_s: float) -> None:
    print(f"  {name:<40} {took_s:7.1f} s  {used_s:7.1f} s of processor time", flush=True)


def _children_s() -> float:
    """The processor time of processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(folder: Path, *command: str, entered: bytes | None = None) -> bytes:
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, input=entered, capture_output=True)
    if done.returncode:
        raise SystemExit(
            f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}"
        )
    return done.stdout


def clone(folder: Path, watch: Stopwatch) -> Path:
    with watch.step("git clone"):
        run(folder, "git", "clone", "-q", str(REPOSITORY), "quire")
    return folder / "quire"


def first_record(folder: Path) -> None:
    watch = Stopwatch("first record")
    source = clone(folder, watch)
    command = ["make", "broker", f"LISTEN={LISTEN}"]
    used_s, began_s = _children_s(), time.monotonic()
    with subprocess.Popen(
        command, cwd=source, env=ENVIRONMENT, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        is_read = any(A_RECORD.match(line) for line in process.stdout)
        took_s = time.monotonic() - began_s
        watch.total()
        os.killpg(process.pid, signal.SIGINT)
        process.stdout.read()
    if not is_read:
        raise SystemExit("make broker ended before it read a record")
    show("of that, make broker", took_s, _children_s() - used_s)


def first_test(folder: Path) -> None:
    watch = Stopwatch("first test")
    clone(folder, watch)
    project = folder / "shop"
    project.mkdir()
    (project / "test_shop.py").write_text(TEST)
    with watch.step("python3 -m venv .venv"):
        run(project, "python3", "-m", "venv", ".venv")
    with watch.step("pip install ../quire"):
        run(project, ".venv/bin/pip", "install", "../quire")
    with watch.step("pip install pytest confluent-kafka"):
        run(project, ".venv/bin/pip", "install", "pytest", "confluent-kafka")
    with watch.step("pytest"):
        run(project, ".venv/bin/pytest", "-q")
    watch.total()


def first_row(folder: Path) -> None:
    watch = Stopwatch("first Spark row")
    clone(folder, watch)
    with watch.step("python3 -m venv .venv"):
        run(folder, "python3", "-m", "venv", ".venv")
    with watch.step("pip install './quire[spark]'"):
        run(folder, ".venv/bin/pip", "install", "./quire[spark]")
    (folder / "job.py").write_text(JOB)
    ENVIRONMENT["PATH"] = f"{folder}/.venv/bin:{ENVIRONMENT['PATH']}"
    with subprocess.Popen(
        [".venv/bin/quire", "start", "--listen", LISTEN], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as node:
        assert node.stdout is not None
        with watch.step("quire start"):
            node.stdout.readline()
        with watch.step("quire produce"):
            run(folder, "quire", "produce", "orders", entered=b"one\n")
        with watch.step("python job.py"):
            printed = run(folder, "python", "job.py")
        watch.total()
        node.terminate()
        node.stdout.read()
    assert b"['one']" in printed, printed


WAYS: dict[str, Callable[[Path], None]] = {"record": first_record, "test": first_test, "row": first_row}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=WAYS, action="append", help="one of the three; repeatable")
    for name in parser.parse_args().only or WAYS:
        with tempfile.TemporaryDirectory(prefix="first-hour-") as folder:
            WAYS[name](Path(folder))


if __name__ == "__main__":
    main()
