"""Fetches a snapshot from the leader, part by part, into a file beside the log.

Every download has a file of its own, whose temporary name no other download uses. The file gets the snapshot's name
only when the log is replaced by it, after it was synced and read through once: a snapshot that was damaged on the way,
that a crash cut short, or that the machine no longer wants, is never one. The log stays as it is; the machine decides
whether the snapshot replaces it. What goes wrong here ends the fetch, not the node: the machine retries. The exception
is a whole snapshot with records that this node does not know, because every further attempt would fetch them again.
The job that reads the snapshot also builds the state that it holds, so that the event loop has only to exchange it.

The file is open only while a part is written, or while the job runs that checks it. So nothing is left open when the
node stops, even if the job never begins.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from itertools import count
from typing import NamedTuple

from quire.protocol.errors import ErrorCode
from quire.raft import snapshot_file
from quire.raft.control_state import ControlState
from quire.raft.effects import (
    Effect,
    RaftEvent,
    Received,
    RestartLog,
    SnapshotFetched,
    SnapshotPartFetched,
    Unreachable,
)
from quire.raft.log_summary import LogPosition
from quire.raft.messages import EpochAnswer
from quire.raft.outbox import Outbox
from quire.raft.record_frame import UnknownRecordError
from quire.raft.replicas import ReplicaKey
from quire.raft.snapshot_file import Snapshot
from quire.raft.wire.fetch_snapshot import SnapshotPart, SnapshotPartRequest
from quire.seams import Disk, Jobs

log = logging.getLogger("quire.raft")


class _Download:
    """A file that parts are written to."""

    __slots__ = ("asked", "leader_id", "name", "position", "received_bytes")

    def __init__(self, leader_id: int, position: LogPosition, name: str) -> None:
        self.leader_id = leader_id
        self.position = position
        self.name = name
        self.received_bytes = 0
        self.asked: SnapshotPartRequest | None = None
        """The request that is in progress."""


class _Fetched(NamedTuple):
    """A whole snapshot under its temporary name, without the records, of which the state is built."""

    name: str
    position: LogPosition
    control: ControlState
    replace_state: Callable[[], None]


class SnapshotFetch:
    """At most one is downloaded at a time: the last that was asked for. Others may still be checked."""

    __slots__ = (
        "_checked",
        "_disk",
        "_download",
        "_fetched",
        "_folder",
        "_jobs",
        "_key",
        "_leader_id",
        "_logged",
        "_numbers",
        "_outbox",
        "_prepare",
        "_step",
        "_stopped",
        "_unsupported",
        "_wanted",
    )

    def __init__(
        self,
        key: ReplicaKey,
        step: Callable[[RaftEvent], Sequence[Effect]],
        outbox: Outbox,
        disk: Disk,
        jobs: Jobs,
        folder: str,
        prepare: Callable[[Snapshot], Callable[[], None]],
        unsupported: Callable[[Exception], None],
    ) -> None:
        """`step` tells the machine what happens, and returns what the machine decides.

        `prepare` builds the state that a snapshot holds, in a job; what it returns replaces the state. `unsupported` is
        called if the leader's snapshot has records that this node does not know.
        """
        self._key = key
        self._step = step
        self._outbox = outbox
        self._disk = disk
        self._jobs = jobs
        self._folder = folder
        self._prepare = prepare
        self._unsupported = unsupported
        self._numbers = count(1)
        self._leader_id = -1
        self._wanted: LogPosition | None = None
        self._download: _Download | None = None
        self._checked: set[LogPosition] = set()
        """Snapshots that are whole, and that a job reads."""
        self._fetched: _Fetched | None = None
        self._logged: object = None
        """The last reason for giving up, which is logged once."""
        self._stopped = False

    def start(self, leader_id: int, position: LogPosition, epoch: int) -> None:
        """Begins, or continues if this snapshot is on its way from this leader, or being checked."""
        self._leader_id, self._wanted = leader_id, position
        download = self._download
        if download is not None and (download.leader_id, download.position) != (leader_id, position):
            self._drop()
            download = None
        if position in self._checked:
            return  # The result of the check is reported for this leader too.
        try:
            download = self._download = download or self._begin(leader_id, position)
        except OSError as error:
            self._give_up(error)
            return
        self._ask(download, epoch)

    def _begin(self, leader_id: int, position: LogPosition) -> _Download:
        name = snapshot_file.download_name(position, next(self._numbers))
        self._disk.open(self._path(name), create=True).close()
        log.info("metadata snapshot is fetched leader=%d end_offset=%d", leader_id, position.offset)
        return _Download(leader_id, position, name)

    def take(self, position: LogPosition) -> Callable[[], None]:
        """The snapshot replaces the log, and is on disk under its name from now on. Blocks.

        The result replaces the state.
        """
        fetched, self._fetched = self._fetched, None
        assert fetched is not None and fetched.position == position, "only a fetched snapshot replaces the log"
        self._disk.rename(self._path(fetched.name), self._path(snapshot_file.file_name(position)))
        self._disk.sync_dir(self._folder)
        return fetched.replace_state

    def stop(self) -> None:
        """A file that a job still reads stays; opening the folder removes it."""
        self._stopped = True
        self._drop()

    def _drop(self) -> None:
        download, self._download = self._download, None
        if download is not None:
            self._remove(download.name)

    def _remove(self, name: str) -> None:
        # What cannot be removed now is removed when the folder is opened.
        with suppress(OSError):
            self._disk.remove(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    # --- Parts

    def _ask(self, download: _Download, epoch: int) -> None:
        asked = SnapshotPartRequest(epoch, self._key, download.position, download.received_bytes)
        download.asked = asked
        answer = self._outbox.ask_for_part(download.leader_id, asked)
        answer.when_done(lambda part: self._answered(download, asked, part))

    def _is_current(self, download: _Download, asked: SnapshotPartRequest) -> bool:
        """False if the machine follows another leader now, or the part was asked for again."""
        return download is self._download and asked is download.asked

    def _answered(self, download: _Download, asked: SnapshotPartRequest, part: SnapshotPart | None) -> None:
        if not self._is_current(download, asked):
            return
        if part is None:
            self._give_up("the leader did not answer")
            return
        self._step(Received(download.leader_id, EpochAnswer(part.epoch, part.leader_id, part.error)))
        if not self._is_current(download, asked):
            return
        received_bytes = download.received_bytes
        if part.error is not ErrorCode.NONE:
            self._give_up(part.error.name)
        elif not 0 < len(part.content) <= part.size - received_bytes:
            self._give_up(f"{len(part.content)} bytes came at {received_bytes} of {part.size}")
        else:
            self._write(download, asked, part)

    def _write(self, download: _Download, asked: SnapshotPartRequest, part: SnapshotPart) -> None:
        try:
            with closing(self._disk.open(self._path(download.name))) as file:
                file.pwritev([part.content], download.received_bytes)
        except OSError as error:
            self._give_up(error)
            return
        download.received_bytes += len(part.content)
        self._step(SnapshotPartFetched(asked.position))
        if not self._is_current(download, asked):
            return
        if download.received_bytes < part.size:
            self._ask(download, asked.epoch)
        else:
            self._complete(download)

    def _give_up(self, reason: str | Exception) -> None:
        # Errors are distinguished by their kind: their text names the file, which is another one each time.
        kind = (type(reason), reason.errno if isinstance(reason, OSError) else None)
        logged = (self._leader_id, reason if isinstance(reason, str) else kind)
        if logged != self._logged:
            log.warning("metadata snapshot not fetched leader=%d reason=%s", self._leader_id, reason)
        self._logged = logged
        self._wanted = None
        self._drop()
        self._step(Unreachable(self._leader_id))

    # --- The whole

    def _complete(self, download: _Download) -> None:
        """Syncs and checks the file in a job. From now on only that job and its result touch it."""
        self._download = None
        position = download.position
        self._checked.add(position)

        def failed(error: Exception) -> None:
            self._checked.discard(position)
            self._remove(download.name)
            if self._stopped or self._wanted != position:
                return
            if isinstance(error, UnknownRecordError):
                self._unsupported(error)
            else:
                self._give_up(error)

        def done(fetched: _Fetched) -> None:
            self._checked.discard(position)
            if not self._stopped:
                self._offer(fetched)

        self._jobs.submit(lambda: self._check(download), done, failed)

    def _check(self, download: _Download) -> _Fetched:
        # A write that failed in the background is reported to the first sync after it, whichever handle that is of.
        with closing(self._disk.open(self._path(download.name))) as file:
            file.sync()
        snapshot = snapshot_file.read_snapshot(self._disk, self._folder, download.name)
        snapshot = snapshot._replace(position=download.position)
        return _Fetched(download.name, snapshot.position, snapshot.control, self._prepare(snapshot))

    def _offer(self, fetched: _Fetched) -> None:
        """Keeps the snapshot if the machine replaces the log by it, which may have to wait for room on the disk."""
        self._logged = None
        position, before = fetched.position, self._fetched
        self._fetched = fetched
        if RestartLog(position) not in self._step(SnapshotFetched(position, fetched.control)):
            self._fetched = before
            self._remove(fetched.name)
