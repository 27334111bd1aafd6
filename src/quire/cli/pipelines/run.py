"""`quire pipelines run`: runs pipelines in one Spark, shows their progress, and stops them in order."""

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from quire.cli.pipelines.state import folder_options, make_importable, open_folders
from quire.client.admin.topics import NewTopic, create_topics, describe_topics
from quire.client.errors import ClientError
from quire.client.offsets import LATEST, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import Failure
from quire.console.live_screen import clear_screen, show_screen
from quire.console.options import Setting, cluster_options, connect
from quire.console.stopping import Stop
from quire.console.terminal import echo
from quire.protocol.errors import ApiError, ErrorCode
from quire.spark.status_table import line, view

if TYPE_CHECKING:
    from quire.spark.runner import PipelineRun, RunningQuery
    from quire.spark.state_folder import StateFolder

TICK_S = 0.1
STATUS_EVERY_S = 1.0
LINES_EVERY_S = 5.0
TOPICS_PATIENCE_S = 15.0
READ_COMMITTED = 1


@click.command(
    epilog="""\b
Examples:
  quire pipelines run shop                         until Ctrl-C, or `quire pipelines stop shop`
  quire pipelines run shop inventory               both in one Spark
  quire pipelines run shop --available-now         existing records, then stop
  quire pipelines run shop --dry-run               check topics, schemas and checkpoints
  quire pipelines run ./mine.yaml --master spark://host:7077"""
)
@click.argument("names", nargs=-1, required=True)
@click.option("--available-now", is_flag=True, help="Read existing records, query by query, then stop.")
@click.option("--dry-run", is_flag=True, help="Only check topics, schemas and checkpoints.")
@click.option("--master", metavar="URL", help="Spark's master.  [default: local[*]]")
@click.option("--conf", "confs", type=Setting(), multiple=True, help="A setting for Spark; repeatable.")
@click.option("-q", "--quiet", is_flag=True, help="No live view.")
@folder_options
@cluster_options
def run(
    names: Sequence[str],
    available_now: bool,
    dry_run: bool,
    master: str | None,
    confs: Sequence[tuple[str, str]],
    quiet: bool,
    folder: str,
    state: str,
    servers: str,
    timeout_s: float,
) -> None:
    """Run pipelines until they are stopped, and show their progress.

    Stopping waits for the current batches. A pipeline that is started again continues where it stopped.
    """
    folders = open_folders(names, folder, state)
    make_importable(folders)
    with ExitStack() as stack:
        client = stack.enter_context(connect(servers, timeout_s))
        client.run(client.cluster.refresh([]))  # fails at once if no broker is reachable
        if not dry_run:
            for found in folders:
                stack.enter_context(held(found))
                _create_topics(client, found)
        if not quiet:
            echo("Starting Spark ...")
            sys.stdout.flush()
        spark = stack.enter_context(_spark(names, master, dict(confs), state))
        if dry_run:
            from quire.cli.pipelines.check import check

            check(client, spark, folders, servers)
            return
        # Only now: until here Ctrl-C ends the command at once. Spark's own handler would cancel the current batches.
        stop = Stop()
        from quire.spark.runner import JobError, Listener, PipelineRun

        listener = Listener()
        spark.streams.addListener(listener)
        runs = [PipelineRun(spark, listener, found, servers, available_now=available_now) for found in folders]
        try:
            _go(client, runs, stop, available_now, quiet)
        except JobError as error:
            raise Failure(f"{error}; {state}/spark.log may say more.") from error


def _go(client: BlockingClient, runs: "list[PipelineRun]", stop: Stop, available_now: bool, quiet: bool) -> None:
    show = Show(client, runs, quiet)
    try:
        show.now()
        for one in runs:
            one.start_processes()
        for one in runs:
            _wait_for_topics(client, one, stop)
            if not stop.asked:
                one.start_queries(lambda: _asked(show, stop))
        while not available_now and not stop.asked:
            for one in runs:
                one.check()
            show.now()
            time.sleep(TICK_S)
    finally:
        for one in runs:
            one.stop()
        statuses = [_report(client, one) for one in runs]
    if not quiet:
        for one, status in zip(runs, statuses, strict=True):
            echo(f"{one.pipeline.name}: stopped")
            echo(view(status, running=False))


def _asked(show: "Show", stop: Stop) -> bool:
    show.now()
    return stop.asked


def _wait_for_topics(client: BlockingClient, one: "PipelineRun", stop: Stop) -> None:
    """Waits while a process of the pipeline creates the topics that its queries read."""
    names = {name.strip() for query in one.pipeline.queries for name in query.source.get("subscribe", "").split(",")}
    deadline_s = time.monotonic() + TOPICS_PATIENCE_S
    while one.processes and not stop.asked and time.monotonic() < deadline_s:
        found = client.run(describe_topics(client.cluster, sorted(names - {""})))
        if not any(isinstance(topic, ApiError) for topic in found.values()):
            return
        one.check()
        time.sleep(TICK_S)


class Show:
    """Shows the progress of pipelines: every second in status.json and at a terminal, less often elsewhere."""

    def __init__(self, client: BlockingClient, runs: "list[PipelineRun]", quiet: bool) -> None:
        self._client = client
        self._runs = runs
        self._live = sys.stdout.isatty() and not quiet
        self._lines = not self._live and not quiet
        self._reported_s = self._shown_s = -LINES_EVERY_S
        if self._live:
            clear_screen()

    def now(self) -> None:
        """Does nothing if the last time was less than a second ago."""
        now_s = time.monotonic()
        if now_s - self._reported_s < STATUS_EVERY_S:
            return
        self._reported_s = now_s
        statuses = {one.pipeline.name: _report(self._client, one) for one in self._runs}
        if self._live:
            screen = "\n\n".join(f"{name}\n{view(status)}" for name, status in statuses.items())
            show_screen(f"{screen}\n\nCtrl-C stops")
        elif self._lines and now_s - self._shown_s >= LINES_EVERY_S:
            self._shown_s = now_s
            for name, status in statuses.items():
                for query in status["queries"]:
                    echo(line(name, query))
                if status["starting"]:
                    echo(f"{name}: {', '.join(status['starting'])} still to start")
        sys.stdout.flush()


def _report(client: BlockingClient, one: "PipelineRun") -> dict[str, Any]:
    """Writes the status and the tallies of a pipeline, for `quire pipelines status`."""
    one.save()
    status = {
        "time": time.time(),
        "pid": os.getpid(),
        "queries": [_query_status(client, one.folder, query) for query in one.queries],
        "starting": [spec.name for spec in one.pipeline.queries[len(one.queries) :]],
    }
    one.folder.write_status(status)
    return status


def _query_status(client: BlockingClient, folder: "StateFolder", query: "RunningQuery") -> dict[str, Any]:
    from quire.spark.progress import source_offsets
    from quire.spark.state_folder import done_offsets

    report, tally = query.report, query.tally
    # A query without new records reports nothing; its checkpoint has its offsets.
    offsets = report.offsets if report else dict(source_offsets(done_offsets(folder.checkpoint(query.spec))))
    return {
        "name": query.spec.name,
        "batch": tally.last_batch,
        "rows": tally.rows,
        "rows_per_second": report.rows_per_second if report else 0.0,
        "lag": _lag(client, offsets) if offsets else None,
        "batch_ms": report.batch_ms if report else None,
        "state_rows": report.state_rows if report else 0,
        "state_bytes": report.state_bytes if report else 0,
        "watermark": report.watermark if report else "",
        "late": tally.late,
        "duplicates": tally.duplicates,
        "missed_batches": tally.missed,
        "counts": tally.counts,
        "this_run": (tally - query.before).to_json(),
    }


def _lag(client: BlockingClient, offsets: Mapping[tuple[str, int], int]) -> int | None:
    """The number of offsets between the query and the end of its partitions; None if the cluster does not answer."""
    topic_partitions = {TopicPartition(*topic_partition): offset for topic_partition, offset in offsets.items()}
    try:
        ends = client.run(
            list_offsets(client.cluster, dict.fromkeys(topic_partitions, LATEST), isolation_level=READ_COMMITTED)
        )
    except (ApiError, ClientError):
        return None
    return sum(max(0, ends[topic_partition].offset - offset) for topic_partition, offset in topic_partitions.items())


@contextmanager
def held(found: "StateFolder") -> Iterator[None]:
    from quire.spark.state_folder import RunningError

    try:
        found.hold()
    except RunningError as error:
        raise Failure(f"{error}.") from error
    try:
        yield
    finally:
        found.release()


@contextmanager
def _spark(names: Sequence[str], master: str | None, confs: dict[str, str], state: str) -> Iterator[Any]:
    """Spark, with its log in a file: on the terminal it would disturb the live view."""
    from quire.spark.session import SparkMissingError, spark_session

    os.makedirs(state, exist_ok=True)
    log = os.path.join(state, "spark.log")
    try:
        session = spark_session(f"quire pipelines {' '.join(names)}", master, confs, log)
    except SparkMissingError as error:
        raise Failure(f"{error}.") from error
    except Exception as error:
        raise Failure(f"Spark did not start; {log} says why ({type(error).__name__}).") from error
    try:
        yield session
    finally:
        session.stop()


def _create_topics(client: BlockingClient, found: "StateFolder") -> None:
    wanted = [NewTopic(topic.name, topic.partitions, configs=topic.configs) for topic in found.pipeline.topics]
    for result in client.run(create_topics(client.cluster, wanted)).values() if wanted else ():
        if isinstance(result, ApiError) and result.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise result
