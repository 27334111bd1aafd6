"""The state of pipelines on disk: a folder for each, with its checkpoints, its tallies and the process that runs it.

    STATE/NAME/lock              held by the process that runs the pipeline
    STATE/NAME/status.json       the last status that this process has written
    STATE/NAME/tallies.json      sums over all batches of each query
    STATE/NAME/checkpoints/...   Spark's
    STATE/lake/...               Delta tables with relative paths

Files are replaced atomically, so a reader never sees half of one.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Mapping
from typing import Any

from quire.spark.pipeline_file import DeltaSinkSpec, Pipeline, QuerySpec
from quire.spark.progress import Tally


class RunningError(Exception):
    """Another process runs the pipeline; the text names it."""


class StateFolder:
    def __init__(self, root: str, pipeline: Pipeline) -> None:
        self.root = os.path.abspath(root)
        self.pipeline = pipeline
        self.path = os.path.join(self.root, pipeline.name)
        self._lock = -1

    # --- Paths

    def checkpoint(self, query: QuerySpec) -> str:
        return os.path.abspath(query.checkpoint or os.path.join(self.path, "checkpoints", query.name))

    def table(self, sink: DeltaSinkSpec) -> str:
        return os.path.join(self.root, "lake", sink.table)

    # --- The running process

    def hold(self) -> None:
        """Locks the pipeline for this process, until `release` or the end of the process."""
        os.makedirs(self.path, exist_ok=True)
        self._lock = os.open(os.path.join(self.path, "lock"), os.O_RDWR | os.O_CREAT, 0o644)
        while not _locked(self._lock, fcntl.LOCK_EX):
            if _locked(self._lock, fcntl.LOCK_SH):
                continue  # only a reader held the lock, and has released it
            self.release()
            raise RunningError(f"pipeline {self.pipeline.name} runs already{self._by_whom()}")
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def runner(self) -> int | None:
        """The id of the process that runs the pipeline; None if none does.

        The file may have the id of a process that was killed, which another process may have now. So the lock decides,
        and readers take it shared: a reader must not mistake another reader for the process that runs the pipeline.
        """
        try:
            descriptor = os.open(os.path.join(self.path, "lock"), os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            if _locked(descriptor, fcntl.LOCK_SH):
                return None
            text = os.pread(descriptor, 32, 0)
            return int(text) if text.isdigit() else None
        finally:
            os.close(descriptor)

    def _by_whom(self) -> str:
        pid = self.runner()
        return "" if pid is None else f" in process {pid}; `quire pipelines stop {self.pipeline.name}` stops it"

    # --- Status

    def status(self) -> dict[str, Any]:
        return self._read("status.json")

    def status_in(self, pid: int | None) -> dict[str, Any]:
        """The status from the process that runs the pipeline, if one does; not from an earlier process."""
        said = self.status()
        if pid is None or said.get("pid") == pid:
            return said
        return {"pid": pid, "queries": [], "starting": [query.name for query in self.pipeline.queries]}

    def write_status(self, status: Mapping[str, Any]) -> None:
        self._write("status.json", status)

    def tallies(self) -> dict[str, Tally]:
        """The tallies of queries that still have the checkpoint that was counted; with a new one, counting restarts."""
        found = {}
        written = self._read("tallies.json")
        for query in self.pipeline.queries:
            kept = written.get(query.name)
            try:
                if kept is not None and kept["id"] == query_id(self.checkpoint(query)):
                    found[query.name] = Tally.from_json(kept["tally"])
            except (KeyError, TypeError):
                continue  # damaged, or of another version: counting restarts
        return found

    def write_tallies(self, tallies: Mapping[str, Tally]) -> None:
        by_name = {query.name: query for query in self.pipeline.queries}
        self._write(
            "tallies.json",
            {
                name: {"id": query_id(self.checkpoint(by_name[name])), "tally": tally.to_json()}
                for name, tally in tallies.items()
            },
        )

    def _read(self, name: str) -> dict[str, Any]:
        try:
            with open(os.path.join(self.path, name), encoding="utf-8") as file:
                content = json.load(file)
        except (FileNotFoundError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        path = os.path.join(self.path, name)
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(content, file)
        os.replace(f"{path}.new", path)

    # --- Resetting

    def reset(self) -> list[str]:
        """Removes checkpoints, tallies and Delta tables; returns what was removed. The pipeline must not be running."""
        paths = [self.checkpoint(query) for query in self.pipeline.queries]
        paths += [self.table(query.sink) for query in self.pipeline.queries if isinstance(query.sink, DeltaSinkSpec)]
        there = [path for path in paths if os.path.exists(path)]
        for path in there:
            shutil.rmtree(path)
        for name in ("tallies.json", "status.json"):
            path = os.path.join(self.path, name)
            if os.path.exists(path):
                os.remove(path)
        return there


def _locked(descriptor: int, kind: int) -> bool:
    """Tries to take the lock without waiting; returns whether it succeeded."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def query_id(checkpoint: str) -> str | None:
    """The id that Spark gave the query of a checkpoint; None if there is no checkpoint yet."""
    try:
        with open(os.path.join(checkpoint, "metadata"), encoding="utf-8") as file:
            identity: str = json.load(file)["id"]
            return identity
    except (OSError, ValueError, KeyError):
        return None


def last_offsets(checkpoint: str) -> Any:
    """The offsets of the last planned batch, as its source wrote them; None if there is none."""
    return _offsets_of_the_last(checkpoint, "offsets")


def done_offsets(checkpoint: str) -> Any:
    """The offsets of the last completed batch."""
    return _offsets_of_the_last(checkpoint, "commits")


def last_done(checkpoint: str) -> int:
    """The number of the last completed batch; -1 if there is none."""
    return _last(checkpoint, "commits")


def _last(checkpoint: str, kind: str) -> int:
    try:
        names = os.listdir(os.path.join(checkpoint, kind))
    except OSError:
        return -1
    return max((int(name) for name in names if name.isdigit()), default=-1)


def _offsets_of_the_last(checkpoint: str, kind: str) -> Any:
    try:
        with open(os.path.join(checkpoint, "offsets", str(_last(checkpoint, kind))), encoding="utf-8") as file:
            return json.loads(file.read().splitlines()[2])
    except (OSError, IndexError, ValueError):
        return None
