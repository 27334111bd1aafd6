"""Making a log durable up to an offset: a job waits for the disk, the event loop decides.

    plan = log.start_flush()          on the event loop: what has to be synced
    plan.run()                        in a job: blocks until it is on disk
    log.finish_flush(plan)            on the event loop: moves the recovery point, or asks for another run

A job changes no names, because the log may be deleted at any time, and another log may have its folder's name by then.
So the event loop creates the file for new leader epochs and renames it when the job has written it; the plan then runs
a second time, to sync the new name.

So everything below the recovery point is on disk: batches, indexes and snapshots of completed segments, leader epochs,
and the names of the files. After a crash before `finish_flush`, more is scanned than necessary, and nothing is lost. A
log has one plan at a time.
"""

import errno
from collections.abc import Iterable
from contextlib import suppress

from quire.seams import Disk, File
from quire.storage.errors import is_full
from quire.storage.file_names import TEMPORARY
from quire.storage.leader_epochs import epochs_path
from quire.storage.producers.producer_snapshot import ComingSnapshot, ProducerSnapshots
from quire.storage.recovery.roll_mark import remove_marks
from quire.storage.segments import Segments


class FlushPlan:
    __slots__ = (
        "_epochs_file",
        "abandoned",
        "disk",
        "epochs",
        "files",
        "folder",
        "names_version",
        "paths",
        "roll_marks",
        "snapshots",
        "truncations",
        "up_to",
        "writes",
    )

    def __init__(self, disk: Disk, folder: str, up_to: int) -> None:
        self.disk = disk
        self.folder = folder
        self.up_to = up_to
        self.abandoned = False
        """The log is closed, or the flush has failed: what is left to do is not needed."""
        self.truncations = 0
        self.files: list[File] = []
        self.paths: list[str] = []
        self.writes = 0
        """The number of the last write that the plan covers."""
        self.roll_marks: list[str] = []
        self.snapshots: list[ComingSnapshot] = []
        """Snapshots of producers to be written."""
        self.epochs: bytes | None = None
        """The new contents of the file of leader epochs; None if it is up to date."""
        self._epochs_file: File | None = None
        """A file for these contents, until it has its final name."""
        self.names_version: int | None = None
        """The version of the folder's names that this plan syncs, with those of its parent; None if they are synced."""

    def run(self) -> None:
        """Blocks. After an OSError, unless the disk is full, it is unknown what is durable."""
        if self._epochs_file is not None:
            self._sync_contents()
            if not self.abandoned:
                self._epochs_file.pwritev([self.epochs or b""], 0)
                self._epochs_file.sync()
            return
        if self.epochs is None:
            self._sync_contents()
        if self.epochs is not None or self.names_version is not None:
            self.disk.sync_dir(self.folder)
        if self.names_version is not None:
            self.disk.sync_dir(self.folder.rpartition("/")[0] or ".")

    def _sync_contents(self) -> None:
        for file in self.files:
            _sync(file)
        for snapshot in self.snapshots:
            if not self.abandoned:
                snapshot.write()
        for path in self.paths:
            # If the file is missing, its segment was deleted.
            with suppress(FileNotFoundError):
                file = self.disk.open(path)
                try:
                    _sync(file)
                finally:
                    file.close()

    def write_epochs(self, epochs: bytes) -> None:
        """Called on the event loop when the plan is made: it also replaces these leader epochs."""
        if self.disk.exists(self._new_epochs_path):
            # A plan that was abandoned may still write to it.
            self.disk.remove(self._new_epochs_path)
        self._epochs_file = self.disk.open(self._new_epochs_path, create=True)
        self.epochs = epochs

    def abandon(self) -> None:
        """The job may be running, or may never run: its error no longer has an effect."""
        self.abandoned = True
        if self._epochs_file is not None:
            self._epochs_file.close()

    def rename_epochs(self) -> bool:
        """Called on the event loop when the plan has run. True if the plan must run again."""
        if self._epochs_file is None:
            return False
        self._epochs_file.close()
        self.disk.rename(self._new_epochs_path, epochs_path(self.folder))
        self._epochs_file = None
        return True

    @property
    def _new_epochs_path(self) -> str:
        return epochs_path(self.folder) + TEMPORARY


def _sync(file: File) -> None:
    try:
        file.sync()
    except OSError as error:
        if error.errno == errno.EBADF:
            # The event loop closed the file because its segment was deleted. There is nothing left to sync.
            return
        if is_full(error):
            # The space was allocated by the writes, so this is not a full disk that can be retried: the system has
            # dropped what it could not write, and another sync would succeed without it.
            raise OSError(errno.EIO, f"what was written is lost ({error.strerror})", file.path) from error
        raise


class FlushState:
    """How much of a log is durable, and which files have to be synced before the recovery point can move."""

    __slots__ = (
        "_epochs_saved",
        "_names_synced_version",
        "_names_version",
        "_roll_marks",
        "_snapshots",
        "_under_way",
        "_unsynced",
        "_unsynced_beside",
        "_writes",
        "recovery_point",
        "truncations",
    )

    def __init__(
        self, recovery_point: int, unsynced: list[str], epochs_saved: bytes, roll_marks: Iterable[str] = ()
    ) -> None:
        self.recovery_point = recovery_point
        self._under_way: FlushPlan | None = None
        self._writes = 0
        self._unsynced = dict.fromkeys(unsynced, 0)
        """Path -> the number of the last write to it."""
        self._unsynced_beside: list[str] = []
        self._roll_marks = list(roll_marks)
        self._snapshots: dict[ComingSnapshot, ProducerSnapshots] = {}
        """Snapshots of producers that the next flush writes, and where they belong."""
        self._epochs_saved = epochs_saved
        # It is unknown whether an earlier process synced the folder, so the first flush does.
        self._names_version = 1
        self._names_synced_version = 0
        self.truncations = 0

    @property
    def flushing(self) -> bool:
        return self._under_way is not None

    def wrote(self, paths: Iterable[str]) -> None:
        """These files must be synced before the recovery point passes the segments they belong to.

        They may be new, so the folder must be synced, too.
        """
        for path in paths:
            if self.flushing or path not in self._unsynced:
                self.created_file()
            self._writes += 1
            self._unsynced[path] = self._writes

    def may_reach(self, offset: int) -> bool:
        """Whether the recovery point is at `offset`, or a running plan, which covers no later writes, may move it."""
        return self.flushing or self.recovery_point >= offset

    def rolls(self, mark: str) -> None:
        """Called before the indexes of a completed segment are written; see `quire.storage.recovery.roll_mark`."""
        self._roll_marks.append(mark)

    def wrote_beside(self, path: str) -> None:
        """This file must be synced before anything in the log counts as durable, but does not cause a flush itself."""
        self._unsynced_beside.append(path)
        self.created_file()

    def begins_snapshot(self, snapshot: ComingSnapshot, snapshots: ProducerSnapshots) -> None:
        self._snapshots[snapshot] = snapshots
        self.created_file()

    def created_file(self) -> None:
        self._names_version += 1

    def truncated(self, recovery_point: int) -> None:
        """Moves the recovery point back; a running plan will not move it forward again."""
        self.truncations += 1
        self.recovery_point = recovery_point

    def start(self, disk: Disk, folder: str, segments: Segments, epochs: bytes, up_to: int) -> FlushPlan | None:
        assert not self.flushing, f"{folder} is being flushed"
        nothing_beside = not (self._unsynced or self._roll_marks or self._snapshots) and epochs == self._epochs_saved
        if up_to <= self.recovery_point and nothing_beside:
            return None
        plan = FlushPlan(disk, folder, up_to)
        plan.truncations = self.truncations
        plan.files = [segment.file for segment in segments.between(self.recovery_point, up_to)]
        plan.paths = [*self._unsynced, *self._unsynced_beside]
        plan.writes = self._writes
        plan.roll_marks = self._roll_marks.copy()
        plan.snapshots = list(self._snapshots)
        if epochs != self._epochs_saved:
            plan.write_epochs(epochs)
        if self._names_version != self._names_synced_version:
            plan.names_version = self._names_version
        self._under_way = plan
        return plan

    def run_now(self, plan: FlushPlan) -> None:
        try:
            plan.run()
            while not self.finish(plan):
                plan.run()
        except OSError:
            self.end()
            raise

    def close(self) -> None:
        """The log is closed, with or without a flush before."""
        self.end()
        for snapshot in self._snapshots:
            snapshot.close()
        self._snapshots = {}

    def end(self) -> None:
        """Abandons the running plan, if there is one: it failed, or must not continue."""
        if self._under_way is not None:
            self._under_way.abandon()
            self._under_way = None

    def finish(self, plan: FlushPlan) -> bool:
        """False if the plan must run again."""
        if plan.rename_epochs():
            return False
        remove_marks(plan.disk, plan.roll_marks)
        self._under_way = None
        for snapshot in plan.snapshots:
            self._snapshots.pop(snapshot).is_written(snapshot)
            snapshot.close()
        self._unsynced = {path: write for path, write in self._unsynced.items() if write > plan.writes}
        self._unsynced_beside = [path for path in self._unsynced_beside if path not in plan.paths]
        del self._roll_marks[: len(plan.roll_marks)]
        if plan.epochs is not None:
            self._epochs_saved = plan.epochs
        if plan.names_version is not None:
            self._names_synced_version = plan.names_version
        if plan.truncations == self.truncations:
            self.recovery_point = max(self.recovery_point, plan.up_to)
        return True
