"""`make run`: a node or several, the shop's and the inventory's events, and pipelines on Spark, with a view of it all.

Each part is a process of its own, started as a user would start it. However this process ends, the others end with it.
"""

import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

import click

from quire.client.errors import ClientError
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import Failure
from quire.console.live_screen import clear_screen, show_screen
from quire.console.options import FloatRange, IntRange
from quire.console.stopping import Stop
from quire.console.terminal import echo
from quire.protocol.errors import ApiError
from quire.spark.dead_letters import dead_letter_topic
from quire.spark.pipeline_file import PipelineFileError, find_pipelines
from quire.spark.session import SparkMissingError, require_spark
from quire.spark.state_folder import StateFolder
from quire_samples.live import colours
from quire_samples.live.cluster_child import ClusterChild
from quire_samples.live.demo import INVENTORY, SHOP, Demo
from quire_samples.live.ending import finish
from quire_samples.live.failover import Failover
from quire_samples.live.figures import SALES, SALES_5M, SESSIONS, STOCK, TOP, ResultReader
from quire_samples.live.node_child import NodeChild
from quire_samples.live.node_figures import NodeFigures, look_at_nodes
from quire_samples.live.screen import cluster_line, line, pace, screen
from quire_samples.live.waiting import run_for
from quire_samples.shop import events

TICK_MS = 100.0
SHOW_EVERY_S = 1.0
LINES_EVERY_S = 5.0
SURVIVE_A_KILL = 3
KILLED_AFTER_S = 30.0
FAILOVER_S = 15.0
"""By then another broker must have taken over."""
RESULTS = (SALES, SALES_5M, TOP, SESSIONS, STOCK, *(dead_letter_topic(topic) for topic in events.TOPICS))


@click.command(
    epilog="""\b
Examples:
  quire-samples live                            until Ctrl-C
  quire-samples live --seconds 60 --rate 500
  quire-samples live --nodes 3 --kill           a broker is killed, and nothing is lost"""
)
@click.option("--seconds", type=FloatRange(min=0), default=0, help="Stop after this time; 0: at Ctrl-C.")
@click.option("--listen", default="127.0.0.1:9092", show_default=True, metavar="HOST:PORT", help="Of the node.")
@click.option("--nodes", type=IntRange(min=1), default=1, show_default=True, metavar="N", help="Run a cluster.")
@click.option("--kill", is_flag=True, help="Kill a broker in the middle, when Spark reads; needs --nodes 3 or more.")
@click.option("--data", help="Data directory.  [default: ./quire-data, or ./quire-cluster with --nodes]")
@click.option("--folder", default="./pipelines", show_default=True, help="Folder with the pipelines' files.")
@click.option(
    "--state", help="State of the pipelines, and logs.  [default: ./quire-pipelines, with --nodes the data's]"
)
@click.option("--rate", type=FloatRange(min=1), default=100, show_default=True, help="Events a second.")
@click.option(
    "--speed", type=FloatRange(min=1), default=60, show_default=True, help="Seconds of the shop's time per second."
)
def live(
    seconds: float,
    listen: str,
    nodes: int,
    kill: bool,
    data: str | None,
    folder: str,
    state: str | None,
    rate: float,
    speed: float,
) -> None:
    """Start a node or a cluster, the senders and the pipelines, show their results, and stop everything in order.

    Run it in a checkout of Quire: it needs the files in ./pipelines.
    """
    if kill and nodes < SURVIVE_A_KILL:
        raise click.UsageError(f"--kill needs --nodes {SURVIVE_A_KILL} or more: fewer do not survive it.")
    data = data or ("./quire-data" if nodes == 1 else "./quire-cluster")
    state = state or ("./quire-pipelines" if nodes == 1 else f"{data.rstrip('/')}-pipelines")
    failover_at_s = None if not kill else seconds / 2 if seconds else KILLED_AFTER_S
    try:
        _run(Setup(listen, nodes, data, folder, state), seconds, rate, speed, failover_at_s)
    except KeyboardInterrupt:
        echo("Stopped at once.")
        raise


class Setup(NamedTuple):
    """Where everything is."""

    listen: str
    nodes: int
    data: str
    folder: str
    state: str

    def start(self) -> NodeChild | ClusterChild:
        if self.nodes == 1:
            return NodeChild(self.listen, self.data, again="make run")
        log = os.path.join(self.state, "nodes.log")
        return ClusterChild(self.nodes, self.listen, self.data, log, again=f"make run NODES={self.nodes}")


def _run(setup: Setup, seconds: float, rate: float, speed: float, failover_at_s: float | None) -> None:
    stop = Stop()
    started = time.monotonic()
    folders = _folders(setup.folder, setup.state)
    names = [found.pipeline.name for found in folders]
    with ExitStack() as stack:
        nodes = setup.start()
        stack.callback(nodes.stop)
        address = nodes.wait_until_ready()
        echo(f"Quire serves {address}, data in {setup.data}; starting Spark with {' and '.join(names)} ...")
        echo(f"{pace(speed)}.")
        client = stack.enter_context(BlockingClient(address, client_id="quire-live"))
        demo = Demo(address, setup.folder, setup.state, folders, started)
        stack.callback(demo.pipelines.stop)
        demo.send(rate, speed)
        for child in demo.senders.values():
            stack.callback(child.stop)
        reader = ResultReader(client, demo.figures, RESULTS)
        failover = None
        if failover_at_s is not None and isinstance(nodes, ClusterChild):
            failover = Failover(failover_at_s, events.TOPICS[0], nodes.kill)
        # With connections of its own: on the others, requests wait behind those for new results.
        looks = stack.enter_context(BlockingClient(address, client_id="quire-live-view"))
        view = View(looks, demo, nodes, speed, failover)
        try:
            view.show(
                client, reader, lambda: stop.asked or bool(seconds and demo.elapsed_s >= seconds and view.is_done)
            )
            if failover is not None:
                echo(f"\n{failover.summary()}.")
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


class View:
    """What is shown while events are sent."""

    def __init__(
        self,
        looks: BlockingClient,
        demo: Demo,
        nodes: NodeChild | ClusterChild,
        speed: float,
        failover: Failover | None,
    ) -> None:
        self._looks = looks
        self._demo = demo
        self._nodes = nodes
        self._speed = speed
        self._failover = failover
        self._figures: NodeFigures | None = None
        self._failing_since_s: dict[str, float] = {}
        """By step."""
        self._failures: list[str] = []
        """What happened to brokers."""

    @property
    def is_done(self) -> bool:
        """Whether what was asked for has happened."""
        return self._failover is None or self._failover.is_over

    def show(self, client: BlockingClient, reader: ResultReader, over: Callable[[], bool]) -> None:
        """Shows the live view until `over` returns true."""
        demo = self._demo
        live = sys.stdout.isatty()
        shown_s = -LINES_EVERY_S
        if live:
            clear_screen()
        while not over():
            demo.check()
            self._despite_failures(reader.take_new)
            news = [*demo.notice(), *self._advance_failover()]
            if live and demo.elapsed_s - shown_s >= SHOW_EVERY_S:
                shown_s = demo.elapsed_s
                self._despite_failures(self._check)
                show_screen(self._screen(), colours.paint)
            elif not live:
                for text in news:
                    echo(text)
                if demo.elapsed_s - shown_s >= LINES_EVERY_S:
                    shown_s = demo.elapsed_s
                    self._despite_failures(self._check)
                    echo(line(demo.elapsed_s, demo.figures, demo.statuses(), self._figures))
            sys.stdout.flush()
            run_for(client, TICK_MS)

    def _despite_failures(self, step: Callable[[], None]) -> None:
        """In a cluster a request may meet a broker that has just failed; the step is done again with the next view."""
        try:
            step()
        except (ApiError, ClientError):
            now_s = time.monotonic()
            since_s = self._failing_since_s.setdefault(step.__name__, now_s)
            if self._nodes.nodes == 1 or now_s - since_s > FAILOVER_S:
                raise
        else:
            self._failing_since_s.pop(step.__name__, None)

    def _advance_failover(self) -> list[str]:
        if self._failover is None or not self._demo.has_read():
            return []  # A process that is still starting to read or send would end if a broker failed.
        news = self._failover.advance(self._looks, self._demo.elapsed_s)
        self._failures += news
        return news

    def _check(self) -> None:
        now = look_at_nodes(self._looks, self._nodes.pids.values(), self._demo.elapsed_s)
        self._figures = now.since(self._figures)

    def _screen(self) -> str:
        demo = self._demo
        return screen(
            demo.address,
            demo.elapsed_s,
            self._speed,
            demo.figures,
            demo.shown(),
            self._figures,
            [cluster_line(self._figures, self._nodes.nodes), *self._failures] if self._nodes.nodes > 1 else [],
        )
