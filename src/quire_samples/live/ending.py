"""The end of `make run`: the stop follows the stream, so that the numbers at the end add up.

The senders stop first, then the pipelines when they have read everything. After Ctrl-C the pipelines have only some
seconds; the next run continues where they stopped.
"""

import json
import signal
import sys
import time

from quire.client.shell_blocking import BlockingClient
from quire.console.failure import EXIT_TERMINATED, Failure
from quire.console.stopping import Stop
from quire.console.terminal import echo
from quire_samples.live.child import CHILD_PATIENCE_S, KILLED_PATIENCE_S
from quire_samples.live.demo import INVENTORY, SHOP, Demo
from quire_samples.live.figures import ResultReader
from quire_samples.live.screen import still_to_come, summary, waiting_for
from quire_samples.live.waiting import run_for

TICK_MS = 100.0
LINES_EVERY_S = 5.0
DRAIN_S = 180.0
LEAVE_DRAIN_S = 8.0
LEAVE_CHILD_PATIENCE_S = 4.0
LEAVE_S = LEAVE_DRAIN_S + LEAVE_CHILD_PATIENCE_S + KILLED_PATIENCE_S
NOTHING_READ = "Stopped before Spark had read anything."


def finish(client: BlockingClient, demo: Demo, reader: ResultReader, stop: Stop) -> None:
    """Stops the senders, then the pipelines when they have read everything; then prints the sums."""
    if stop.asked and not demo.has_read():
        demo.kill()  # an orderly stop would wait until Spark is up and has finished a batch
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
    drained = any(said.values()) and drain(client, demo, reader, stop)  # a sender without a report has sent nothing
    out = demo.pipelines.stop(LEAVE_CHILD_PATIENCE_S if stop.asked else CHILD_PATIENCE_S)
    code = demo.pipelines.process.returncode
    too_early = (-signal.SIGTERM, EXIT_TERMINATED)  # stopped before Spark was up
    too_slow = -signal.SIGKILL  # killed in the middle of a batch
    if code not in (0, *too_early) and not (code == too_slow and stop.asked):
        raise Failure(f"the pipelines did not stop in order: {out.strip() or demo.pipelines.last_words()}")
    reader.take_new()
    statuses = demo.statuses()
    queries = {query["name"]: query for query in statuses.get(SHOP, {}).get("queries", [])}
    if "clean" not in queries or "events" not in said[SHOP]:
        echo(NOTHING_READ)
        return
    lines, adds_up = summary(said[SHOP]["events"], queries["clean"], drained=drained)
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
        echo("Spark had not read everything yet; the next run continues there.")
    if not adds_up:
        raise Failure("the sum does not add up; please report it.")


def drain(client: BlockingClient, demo: Demo, reader: ResultReader, stop: Stop) -> bool:
    """Waits until every query has read everything, twice in a row: a query may write what another one reads.

    Returns whether that was reached. The wait has a limit, and Ctrl-C ends it. If a Ctrl-C has started the stop, the
    limit is short, and a second Ctrl-C ends everything at once (`Stop`).
    """
    deadline_s = time.monotonic() + (LEAVE_DRAIN_S if stop.asked else DRAIN_S)
    stopped_at = time.time()
    asked_before = stop.asked
    shown_s = time.monotonic()
    told = ""
    calm_since: float | None = None
    while time.monotonic() < deadline_s and stop.asked == asked_before:
        demo.pipelines.check()
        reader.take_new()
        run_for(client, TICK_MS)
        said = demo.statuses()
        statuses = list(said.values())
        if time.monotonic() - shown_s >= LINES_EVERY_S:
            shown_s = time.monotonic()
            if (waiting := still_to_come(said)) != told:
                echo(waiting)
                sys.stdout.flush()
            told = waiting
        fresh = len(statuses) == len(demo.folders) and all(status["time"] > stopped_at + 1 for status in statuses)
        if not fresh or waiting_for(statuses) != 0:
            calm_since = None
        elif calm_since is None:
            calm_since = max(status["time"] for status in statuses)
        elif min(status["time"] for status in statuses) > calm_since + 1:
            return True
    return False
