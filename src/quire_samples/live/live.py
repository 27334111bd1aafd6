"""`make run`: a node, the shop's and the inventory's events, and the pipelines on Spark, with a view of their results.

Each part is a process of its own, started as a user would start it. However this process ends, the others end with it.
"""

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

import click

from quire.client.shell_blocking import BlockingClient
from quire.console.failure import Failure
from quire.console.live_screen import clear_screen, show_screen
from quire.console.options import FloatRange
from quire.console.stopping import Stop
from quire.console.terminal import echo
from quire.spark.dead_letters import dead_letter_topic
from quire.spark.pipeline_file import PipelineFileError, find_pipelines
from quire.spark.session import SparkMissingError, require_spark
from quire.spark.state_folder import StateFolder
from quire_samples.live import colours
from quire_samples.live.demo import INVENTORY, SHOP, Demo
from quire_samples.live.ending import finish
from quire_samples.live.figures import SALES, SALES_5M, SESSIONS, STOCK, TOP, ResultReader
from quire_samples.live.node_child import NodeChild
from quire_samples.live.node_figures import NodeFigures, look_at_node
from quire_samples.live.screen import line, pace, screen
from quire_samples.live.waiting import run_for
from quire_samples.shop import events

TICK_MS = 100.0
SHOW_EVERY_S = 1.0
LINES_EVERY_S = 5.0
RESULTS = (SALES, SALES_5M, TOP, SESSIONS, STOCK, *(dead_letter_topic(topic) for topic in events.TOPICS))


@click.command(
    epilog="""\b
Examples:
  quire-samples live                            until Ctrl-C
  quire-samples live --seconds 60 --rate 500"""
)
@click.option("--seconds", type=FloatRange(min=0), default=0, help="Stop after this time; 0: at Ctrl-C.")
@click.option("--listen", default="127.0.0.1:9092", show_default=True, metavar="HOST:PORT", help="Of the node.")
@click.option("--data", default="./quire-data", show_default=True, help="Data directory of the node.")
@click.option("--folder", default="./pipelines", show_default=True, help="Folder with the pipelines' files.")
@click.option("--state", default="./quire-pipelines", show_default=True, help="State of the pipelines, and logs.")
@click.option("--rate", type=FloatRange(min=1), default=100, show_default=True, help="Events a second.")
@click.option(
    "--speed", type=FloatRange(min=1), default=60, show_default=True, help="Seconds of the shop's time per second."
)
def live(seconds: float, listen: str, data: str, folder: str, state: str, rate: float, speed: float) -> None:
    """Start a node, the senders and the pipelines, show their results, and stop everything in order.

    Run it in a checkout of Quire: it needs the files in ./pipelines.
    """
    try:
        _run(seconds, listen, data, folder, state, rate, speed)
    except KeyboardInterrupt:
        echo("Stopped at once.")
        raise


def _run(seconds: float, listen: str, data: str, folder: str, state: str, rate: float, speed: float) -> None:
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
            _show(
                client, demo, reader, node.pid, speed, lambda: stop.asked or bool(seconds and demo.elapsed_s >= seconds)
            )
            finish(client, demo, reader, stop)
        except KeyboardInterrupt:  # the second Ctrl-C stops everything at once
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


def _show(
    client: BlockingClient, demo: Demo, reader: ResultReader, node_pid: int, speed: float, over: Callable[[], bool]
) -> None:
    """Shows the live view until `over` returns true."""
    live = sys.stdout.isatty()
    node: NodeFigures | None = None
    shown_s = -LINES_EVERY_S
    if live:
        clear_screen()
    while not over():
        demo.check()
        reader.take_new()
        news = demo.notice()
        if live and demo.elapsed_s - shown_s >= SHOW_EVERY_S:
            shown_s = demo.elapsed_s
            node = look_at_node(client, node_pid, demo.elapsed_s).since(node)
            show_screen(screen(demo.address, demo.elapsed_s, speed, demo.figures, demo.shown(), node), colours.paint)
        elif not live:
            for text in news:
                echo(text)
            if demo.elapsed_s - shown_s >= LINES_EVERY_S:
                shown_s = demo.elapsed_s
                node = look_at_node(client, node_pid, demo.elapsed_s).since(node)
                echo(line(demo.elapsed_s, demo.figures, demo.statuses(), node))
        sys.stdout.flush()
        run_for(client, TICK_MS)
