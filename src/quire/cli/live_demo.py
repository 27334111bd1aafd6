"""`make run`: Quire, the shop's and the inventory's events, and the pipelines on Spark, with a view of what they find.

Each part is a process of its own and is started as a user would start it. Stopping goes with the stream: first those
who send, then the pipelines when they have read everything, then the node; so the numbers at the end add up. Whoever
presses Ctrl-C is not kept for long: the pipelines have some seconds then, and the next run does the rest.
Whatever becomes of this process, the others do not outlive it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import click

from quire.cli.lazy import Failure
from quire.cli.live_figures import SALES, SALES_5M, SESSIONS, STOCK, TOP, Figures, ResultReader
from quire.cli.live_view import line, pace, screen, still_to_come, summary, waiting_for
from quire.cli.node_child import NodeChild
from quire.cli.options import FloatRange
from quire.cli.stopping import Stop
from quire.cli.terminal import echo
from quire.cli.watch import clear_screen, show_screen
from quire.client.errors import ClientError
from quire.client.shell_blocking import BlockingClient
from quire.demo import shop_events
from quire.protocol.errors import ApiError
from quire.spark.dead_letters import dead_letter_topic
from quire.spark.pipeline_file import PipelineFileError, find_pipelines
from quire.spark.session import SparkMissingError, require_spark
from quire.spark.state_folder import StateFolder

TICK_MS = 100.0
SHOW_EVERY_S = 1.0
LINES_EVERY_S = 5.0
DRAIN_S = 180.0
CHILD_PATIENCE_S = 60.0
LEAVE_DRAIN_S = 8.0
LEAVE_CHILD_PATIENCE_S = 4.0
KILLED_PATIENCE_S = 3.0
LEAVE_S = LEAVE_DRAIN_S + LEAVE_CHILD_PATIENCE_S + KILLED_PATIENCE_S
FEW_EVENTS = (
    # Java's optimizing compiler takes a core for the first minute, and there are few; who runs for long wants it. Its
    # parallel garbage collector takes a tenth of Java's time until the first results.
    *("--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
    # A hundred events a second are no work to share out, and every share has a task and a state of its own.
    *("--conf", "spark.sql.shuffle.partitions=1"),
)
SHOP, INVENTORY = "shop", "inventory"
NOTHING_READ = "Stopped before Spark had read anything."
RESULTS = (SALES, SALES_5M, TOP, SESSIONS, STOCK, *(dead_letter_topic(topic) for topic in shop_events.TOPICS))


class Child:
    """A `quire` command beside this one; Ctrl-C does not reach it, and it ends when this process does."""

    def __init__(self, name: str, arguments: Sequence[str], log: str) -> None:
        self.name = name
        self._log = log
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "quire.testing.launch", str(os.getpid()), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    def check(self) -> None:
        if (code := self.process.poll()) is not None:
            raise Failure(f"{self.name} ended by itself with exit code {code}: {self.last_words()}")

    def stop(self, patience_s: float = CHILD_PATIENCE_S) -> str:
        """SIGTERM, SIGKILL where that is not enough, and what it printed in the end."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            out, _ = self.process.communicate(timeout=patience_s)
            return out.decode(errors="replace")
        except subprocess.TimeoutExpired:
            self.kill()
            return ""

    def kill(self) -> None:
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):  # until Spark, which has its standard output too, is gone as well
            self.process.communicate(timeout=KILLED_PATIENCE_S)

    def last_words(self) -> str:
        with open(self._log, encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n")
        return next((text for text in reversed(lines) if text.strip()), f"{self._log} is empty")


class Demo:
    """The children, and what is known of them."""

    def __init__(self, address: str, folder: str, state: str, folders: list[StateFolder], started: float) -> None:
        self.address = address
        self.folders = folders
        self.started = started
        self.figures = Figures()
        self.senders: dict[str, Child] = {}
        self._state = state
        self._names = [found.pipeline.name for found in folders]
        self._spark_up_s: float | None = None
        self._first_results_s: float | None = None
        os.makedirs(state, exist_ok=True)
        run = ["pipelines", "run", *self._names, *FEW_EVENTS, "--quiet", "--folder", folder, "--state", state]
        self.pipelines = self._child("pipelines", run)

    def send(self, rate: float, speed: float) -> None:
        shop = ["demo", "shop", "--json", "--rate", str(rate), "--speed", str(speed)]
        self.senders[SHOP] = self._child("demo-shop", shop)
        if INVENTORY in self._names:
            self.senders[INVENTORY] = self._child(
                "demo-inventory", ["demo", "inventory", "--json", "--rate", str(rate / 5)]
            )

    def _child(self, name: str, arguments: list[str]) -> Child:
        return Child(name, [*arguments, "-b", self.address], os.path.join(self._state, f"{name}.log"))

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started

    def statuses(self) -> dict[str, dict[str, Any]]:
        """What the pipelines say now; nothing that an earlier run has left."""
        said = {folder.pipeline.name: folder.status() for folder in self.folders}
        return {name: status for name, status in said.items() if status.get("pid") == self.pipelines.process.pid}

    def shown(self) -> dict[str, dict[str, Any]]:
        """The same with all queries starting where nothing is said yet."""
        return {found.pipeline.name: found.status_in(self.pipelines.process.pid) for found in self.folders}

    def has_read(self) -> bool:
        """Whether a batch was done in this run: before that there is nothing to sum up, and nothing to be lost."""
        queries = [query for status in self.statuses().values() for query in status["queries"]]
        return any(query["batch_ms"] is not None for query in queries)

    def kill(self) -> None:
        for child in (self.pipelines, *self.senders.values()):
            child.kill()

    def check_inventory(self) -> None:
        """View, history and lake must have added up to the same stock."""
        lake = os.path.join(self._state, "lake", "inventory", "events")
        check = self._child("inventory-check", ["inventory", "check", "--lake", lake, "--wait", "0"])
        out, _ = check.process.communicate(timeout=CHILD_PATIENCE_S)
        echo(out.decode(errors="replace").strip() or check.last_words())
        if check.process.returncode:
            raise Failure("the inventory does not add up; please tell us.")

    def check(self) -> None:
        for child in (self.pipelines, *self.senders.values()):
            child.check()

    def notice(self) -> list[str]:
        """What has happened for the first time."""
        news = []
        if self._spark_up_s is None and len(self.statuses()) == len(self.folders):
            self._spark_up_s = self.elapsed_s
            news.append(f"Spark is up after {self._spark_up_s:.0f} s")
        if self._first_results_s is None and self._spark_up_s and self.figures.results:
            self._first_results_s = self.elapsed_s
            news.append(f"first results {self._first_results_s - self._spark_up_s:.0f} s after Spark was up")
        return news


@click.command()
@click.option("--seconds", type=FloatRange(min=0), default=0, help="End by itself after so long; 0: at Ctrl-C.")
@click.option("--listen", default="127.0.0.1:9092", show_default=True, metavar="HOST:PORT")
@click.option("--data", default="./quire-data", show_default=True)
@click.option("--folder", default="./pipelines", show_default=True)
@click.option("--state", default="./quire-pipelines", show_default=True)
@click.option("--rate", type=FloatRange(min=1), default=100, show_default=True, help="Events a second.")
@click.option("--speed", type=FloatRange(min=1), default=60, show_default=True, help="Of the shop's time.")
def live(seconds: float, listen: str, data: str, folder: str, state: str, rate: float, speed: float) -> None:
    """Start Quire, events and pipelines, show what they find, and stop everything in order."""
    stop = Stop()
    started = time.monotonic()
    folders = _folders(folder, state)
    names = [found.pipeline.name for found in folders]
    with ExitStack() as stack:
        node = NodeChild(listen, data, again="make run")
        stack.callback(node.stop)
        address = node.wait_until_ready()
        echo(f"Quire serves {address}, data in {data}; starting Spark with {' and '.join(names)} ...")
        echo(f"{pace(speed)}.")
        client = stack.enter_context(BlockingClient(address, client_id="quire-live"))
        demo = Demo(address, folder, state, folders, started)
        stack.callback(demo.pipelines.stop)
        demo.send(rate, speed)
        for child in demo.senders.values():
            stack.callback(child.stop)
        reader = ResultReader(client, demo.figures, RESULTS)
        try:
            _show(client, demo, reader, speed, lambda: stop.asked or bool(seconds and demo.elapsed_s >= seconds))
            _finish(client, demo, reader, stop)
        except KeyboardInterrupt:  # the second Ctrl-C waits for nobody
            demo.kill()
            raise


def _folders(folder: str, state: str) -> list[StateFolder]:
    try:
        require_spark()
        found = {pipeline.name: pipeline for pipeline in find_pipelines(folder)}
    except (SparkMissingError, PipelineFileError) as error:
        raise Failure(f"{error}.") from error
    if SHOP not in found:
        raise Failure(f"there is no pipeline {SHOP} in {folder}; start this where Quire's sources are.")
    return [StateFolder(state, found[name]) for name in (SHOP, INVENTORY) if name in found]


def _show(client: BlockingClient, demo: Demo, reader: ResultReader, speed: float, over: Callable[[], bool]) -> None:
    """The live view, until it is over."""
    live = sys.stdout.isatty()
    shown_s = -LINES_EVERY_S
    if live:
        clear_screen()
    while not over():
        demo.check()
        reader.take_new()
        news = demo.notice()
        if live and demo.elapsed_s - shown_s >= SHOW_EVERY_S:
            shown_s = demo.elapsed_s
            view = screen(demo.address, demo.elapsed_s, speed, demo.figures, demo.shown())
            show_screen(view)
        elif not live:
            for text in news:
                echo(text)
            if demo.elapsed_s - shown_s >= LINES_EVERY_S:
                shown_s = demo.elapsed_s
                echo(line(demo.elapsed_s, demo.figures, demo.statuses()))
        sys.stdout.flush()
        _let_happen(client, TICK_MS)


def _finish(client: BlockingClient, demo: Demo, reader: ResultReader, stop: Stop) -> None:
    """Those who send first, then the pipelines when they have read everything; then the sums."""
    if stop.asked and not demo.has_read():
        demo.kill()  # in order Spark would first come up, and finish a batch, to be stopped
        echo(f"\n{NOTHING_READ}")
        return
    echo(
        "\nStopping: no more events are sent, and Spark is given time to read those that were "
        + (
            f"({LEAVE_S:.0f} s at most; press Ctrl-C again to stop at once) ..."
            if stop.asked
            else f"({DRAIN_S:.0f} s at most; Ctrl-C ends the wait) ..."
        )
    )
    said = {name: json.loads(child.stop() or "{}") for name, child in demo.senders.items()}
    drained = any(said.values()) and drain(client, demo, reader, stop)  # who says nothing has sent nothing
    out = demo.pipelines.stop(LEAVE_CHILD_PATIENCE_S if stop.asked else CHILD_PATIENCE_S)
    code = demo.pipelines.process.returncode
    too_early, too_slow = -signal.SIGTERM, -signal.SIGKILL  # it had not even begun; it was in the middle of a batch
    if code not in (0, too_early) and not (code == too_slow and stop.asked):
        raise Failure(f"the pipelines did not stop in order: {out.strip() or demo.pipelines.last_words()}")
    reader.take_new()
    statuses = demo.statuses()
    queries = {query["name"]: query for query in statuses.get(SHOP, {}).get("queries", [])}
    if "clean" not in queries or "events" not in said[SHOP]:
        echo(NOTHING_READ)
        return
    lines, adds_up = summary(said[SHOP]["events"], queries["clean"])
    for text in lines:
        echo(text)
    figures = demo.figures
    letters = figures.dead_letters.total()
    where = "On their topics, with those of earlier runs" if figures.earlier_sessions else "On their topics"
    echo(f"{where}: {figures.orders:,} orders, {figures.sessions:,} sessions, {letters:,} dead letters")
    if INVENTORY in said:
        echo(f"{said[INVENTORY].get('commands', 0):,} inventory commands, {len(figures.stock):,} items in stock")
        if drained:
            demo.check_inventory()
    if not drained:
        echo("Spark had not read everything yet; the next run goes on there.")
    if not adds_up:
        raise Failure("the sum does not add up; please tell us.")


def drain(client: BlockingClient, demo: Demo, reader: ResultReader, stop: Stop) -> bool:
    """Until every query has read what is there, twice in a row: a query may write what another one reads.

    Whether it came to that. A machine that is far too busy is not waited for without end, nor is any after Ctrl-C: one
    that has come before, and had all this begin, was the first, and the second ends everything (`Stop`).
    """
    deadline_s = time.monotonic() + (LEAVE_DRAIN_S if stop.asked else DRAIN_S)
    stopped_at = time.time()
    asked_before = stop.asked
    shown_s = time.monotonic()
    calm_since: float | None = None
    while time.monotonic() < deadline_s and stop.asked == asked_before:
        demo.pipelines.check()
        reader.take_new()
        _let_happen(client, TICK_MS)
        said = demo.statuses()
        statuses = list(said.values())
        if time.monotonic() - shown_s >= LINES_EVERY_S:
            shown_s = time.monotonic()
            echo(still_to_come(said))
            sys.stdout.flush()
        fresh = len(statuses) == len(demo.folders) and all(status["time"] > stopped_at + 1 for status in statuses)
        if not fresh or waiting_for(statuses) != 0:
            calm_since = None
        elif calm_since is None:
            calm_since = max(status["time"] for status in statuses)
        elif min(status["time"] for status in statuses) > calm_since + 1:
            return True
    return False


def _let_happen(client: BlockingClient, milliseconds: float) -> None:
    until = time.monotonic() + milliseconds / 1000
    while (left := until - time.monotonic()) > 0:
        client.loop.run_once(left * 1000)


def main() -> None:
    try:
        live(standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        echo("Stopped at once.")
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (ApiError, ClientError) as error:
        from quire.cli.failures import explain

        failure = explain(error)
        failure.show()
        sys.exit(failure.exit_code)


if __name__ == "__main__":
    main()
