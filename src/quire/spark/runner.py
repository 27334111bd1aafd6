"""Runs the queries of pipelines in one Spark, listens to what they report, and stops them in order.

A query is built from its file: `format("quire")` read as a stream, the job, and a sink that writes every batch once.
Stopping waits for the current batch. A batch that is interrupted nevertheless is repeated by the next start, and the
sinks write it once. The tallies of each pipeline are written whenever they change.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from quire.spark.delta import DeltaSink
from quire.spark.pipeline_file import DeltaSinkSpec, Pipeline, QuerySpec
from quire.spark.progress import QueryReport, Tally
from quire.spark.query_failure import job_sentence, sentence
from quire.spark.state_folder import StateFolder, last_done

Job = Callable[[DataFrame], DataFrame]

SERVERS = "kafka.bootstrap.servers"
GROUP_ID = "kafka.group.id"
LOOK_S = 0.02
IDLE = ("Waiting for data to arrive", "Waiting for next trigger")
STOP_PATIENCE_S = 30.0
PROCESS_PATIENCE_S = 15.0


class JobError(Exception):
    """A pipeline cannot run, or a query has failed; the text names it."""


def load_job(query: QuerySpec) -> Job:
    module, _, name = query.job.partition(":")
    try:
        job: Job = getattr(import_module(module), name)
    except ImportError as error:
        raise JobError(f"query {query.name}: job {query.job} cannot be imported: {error}") from error
    except AttributeError:
        raise JobError(f"query {query.name}: module {module} has no {name}") from None
    return job


def query_rows(spark: SparkSession, pipeline: Pipeline, query: QuerySpec, servers: str) -> DataFrame:
    """The rows that the query writes: its source, read as a stream, through its job."""
    options = {SERVERS: servers, GROUP_ID: f"{pipeline.name}-{query.name}", **query.source}
    try:
        rows = load_job(query)(spark.readStream.format("quire").options(**options).load())
    except JobError:
        raise
    except Exception as error:
        raise JobError(f"query {query.name} of pipeline {pipeline.name}: {job_sentence(error)}") from error
    if not isinstance(rows, DataFrame):
        raise JobError(
            f"query {query.name} of pipeline {pipeline.name}: job {query.job} returns {type(rows).__name__}, "
            "but must return a DataFrame"
        )
    return rows


class Listener(StreamingQueryListener):
    """Keeps the last report and the tally of every query, by name. Spark calls it in another thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._reports: dict[str, QueryReport] = {}
        self._tallies: dict[str, Tally] = {}
        self._ended: set[str] = set()

    def expect(self, name: str, tally: Tally) -> None:
        """Called before a query of this name starts: counting continues from this tally."""
        with self._changed:
            self._tallies[name] = tally

    def report(self, name: str) -> QueryReport | None:
        with self._changed:
            return self._reports.get(name)

    def tally(self, name: str) -> Tally:
        with self._changed:
            return Tally.from_json(self._tallies[name].to_json())

    def wait_for_end(self, run_id: str, timeout_s: float) -> bool:
        """Whether Spark has reported everything about a stopped query: its end comes last."""
        with self._changed:
            return self._changed.wait_for(lambda: run_id in self._ended, timeout_s)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = json.loads(event.progress.json)
        report = QueryReport.from_progress(progress)
        with self._changed:
            self._reports[progress["name"]] = report
            self._tallies.setdefault(progress["name"], Tally()).add(report)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        with self._changed:
            self._ended.add(str(event.runId))
            self._changed.notify_all()


class RunningQuery:
    """A started query, with the tally of all its batches, including earlier runs."""

    def __init__(self, spec: QuerySpec, query: StreamingQuery, listener: Listener, before: Tally) -> None:
        self.spec = spec
        self.before = before
        self._query = query
        self._listener = listener

    @property
    def report(self) -> QueryReport | None:
        return self._listener.report(str(self._query.name))

    @property
    def tally(self) -> Tally:
        return self._listener.tally(str(self._query.name))

    @property
    def active(self) -> bool:
        return bool(self._query.isActive)

    @property
    def beginning(self) -> bool:
        """Whether the query is still running its first batch, or looking for one."""
        return self.active and self.report is None and self._query.status["message"] not in IDLE

    def failure(self) -> str | None:
        error = None if self._query.isActive else self._query.exception()
        return None if error is None else sentence(error)

    def stop(self) -> None:
        """Waits for the current batch to end; everything is counted when this returns."""
        deadline = time.monotonic() + STOP_PATIENCE_S
        while self._query.isActive and self._query.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        self._query.stop()
        self._listener.wait_for_end(str(self._query.runId), STOP_PATIENCE_S)


class PipelineRun:
    """A pipeline that runs in this process."""

    def __init__(
        self, spark: SparkSession, listener: Listener, folder: StateFolder, servers: str, *, available_now: bool = False
    ) -> None:
        self.folder = folder
        self.pipeline = folder.pipeline
        self.queries: list[RunningQuery] = []
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._spark = spark
        self._listener = listener
        self._servers = servers
        self._available_now = available_now
        self._written: dict[str, Tally] = {}

    def start_processes(self) -> None:
        """Called first: processes may create what the queries read. They are not started with `available_now`."""
        if not self._available_now:
            for name, command in self.pipeline.processes.items():
                self.processes[name] = start_process(command, self._servers)

    def start_queries(self, stopping: Callable[[], bool] = lambda: False) -> None:
        """Starts the queries in order, each when the one before has done a batch or has nothing to do, so that the
        first query of the file has results first. With `available_now`, each starts when the one before has ended.
        Ends early if `stopping` returns true.
        """
        tallies = self.folder.tallies()
        for spec in self.pipeline.queries:
            before = tallies.get(spec.name, Tally())
            # Otherwise this run would miss the last batch of a run that was killed.
            before.done_up_to(last_done(self.folder.checkpoint(spec)))
            self._listener.expect(self._name(spec), Tally.from_json(before.to_json()))
            query = RunningQuery(spec, self._start(spec), self._listener, before)
            self.queries.append(query)
            while query.active if self._available_now else query.beginning:
                if stopping():
                    return
                time.sleep(LOOK_S)
                self.check()
        self.check()

    def _name(self, spec: QuerySpec) -> str:
        return f"{self.pipeline.name}.{spec.name}"

    def _start(self, spec: QuerySpec) -> StreamingQuery:
        writer = (
            query_rows(self._spark, self.pipeline, spec, self._servers)
            .writeStream.queryName(self._name(spec))
            .option("checkpointLocation", self.folder.checkpoint(spec))
        )
        writer = (
            writer.trigger(availableNow=True) if self._available_now else writer.trigger(processingTime=spec.trigger)
        )
        if isinstance(spec.sink, DeltaSinkSpec):
            table = self.folder.table(spec.sink)
            writer = writer.foreachBatch(
                DeltaSink(table, partition_by=spec.sink.partition_by, compact_every=spec.sink.compact_every)
            )
        else:
            writer = writer.format("quire").option(SERVERS, self._servers).options(**spec.sink.options)
        try:
            return writer.start()
        except Exception as error:
            raise JobError(f"query {spec.name} of pipeline {self.pipeline.name}: {sentence(error)}") from error

    def check(self) -> None:
        """Raises JobError if a query has failed or a process has ended by itself."""
        for query in self.queries:
            if (failure := query.failure()) is not None:
                raise JobError(f"query {query.spec.name} of pipeline {self.pipeline.name} failed: {failure}")
        for name, process in self.processes.items():
            if (code := process.poll()) is not None:
                raise JobError(f"process {name} of pipeline {self.pipeline.name} ended by itself with exit code {code}")

    def save(self) -> None:
        tallies = {query.spec.name: query.tally for query in self.queries}
        if tallies != self._written:
            self.folder.write_tallies(tallies)
            self._written = tallies

    def stop(self) -> None:
        """Stops processes first, since they feed the queries; then the queries in the order of the file."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(PROCESS_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for query in self.queries:
            query.stop()
        if self.queries:
            self.save()


def start_process(command: Sequence[str], servers: str) -> "subprocess.Popen[bytes]":
    """A process beside the queries, with {servers} replaced by the brokers; `python` is this interpreter.

    `quire ...` and `python -m ...` do not outlive this process.
    """
    words = [word.replace("{servers}", servers) for word in command]
    if words[0] == "quire" or words[:2] == ["python", "-m"]:
        words[:1] = [sys.executable, "-m", "quire.testing.launch", str(os.getpid())]
    elif words[0] == "python":
        words[:1] = [sys.executable]
    # A new session: Ctrl-C reaches only this process, which then stops the child. Its output would disturb the view.
    return subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True, env=dict(os.environ)
    )
