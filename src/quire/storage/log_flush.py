"""Making a log durable up to an offset, in two parts: the waiting in a job, the deciding on the event loop.

    plan = log.start_flush()          on the loop: what has to be synced, as of now
    plan.run()                        in a job: blocks until the disk has it
    log.finish_flush(plan)            on the loop: only now the recovery point moves

The recovery point therefore never passes anything that is not on disk: not the batches, not the indexes and snapshots
of completed segments, not the epochs, not the names of the files. A crash before `finish_flush` is recorded merely
means that more is scanned than needed. A log has one plan under way at a time; who comes meanwhile shares the next one.
"""

import errno
from collections.abc import Iterable
from contextlib import suppress

from quire.seams import Disk, File
from quire.storage.errors import is_full
from quire.storage.leader_epochs import write_epochs
from quire.storage.roll_mark import remove_marks
from quire.storage.segments import Segments


class FlushPlan:
    __slots__ = (
        "abandoned",
        "disk",
        "epochs",
        "files",
        "folder",
        "names_version",
        "paths",
        "roll_marks",
        "truncations",
        "up_to",
        "writes",
    )

    def __init__(self, disk: Disk, folder: str, up_to: int) -> None:
        self.disk = disk
        self.folder = folder
        self.up_to = up_to
        self.abandoned = False
        """The log is gone, and another one may have its name: nothing more is to be changed in the folder."""
        self.truncations = 0
        self.files: list[File] = []
        self.paths: list[str] = []
        self.writes = 0
        """How many files had been written; what was written again after this is none of the plan's."""
        self.roll_marks: list[str] = []
        self.epochs: bytes | None = None
        """What the epochs' file has to say, when it does not say so already."""
        self.names_version: int | None = None
        """Which names the folder had, when it has to be synced; it and the folder it stands in."""

    def run(self) -> None:
        """Blocks. After an OSError, but for that of a full disk, nobody knows what is durable and what will be."""
        for file in self.files:
            _sync(file)
        for path in self.paths:
            # If it is not there any more, its segment has been deleted: before this, or while it was being opened.
            with suppress(FileNotFoundError):
                file = self.disk.open(path)
                try:
                    _sync(file)
                finally:
                    file.close()
        if self.epochs is not None and not self.abandoned:
            write_epochs(self.disk, self.folder, self.epochs)
        if self.names_version is not None:
            self.disk.sync_dir(self.folder)
            self.disk.sync_dir(self.folder.rpartition("/")[0] or ".")
        if not self.abandoned:
            remove_marks(self.disk, self.roll_marks)


def _sync(file: File) -> None:
    try:
        file.sync()
    except OSError as error:
        if error.errno == errno.EBADF:
            # Closed by ourselves, because its segment was deleted: there is nothing to be made durable any more.
            return
        if is_full(error):
            # Not for want of room, whatever it says: what was written had been given its room. What the system could
            # not keep it has dropped, and another sync would succeed without it.
            raise OSError(errno.EIO, f"what was written is lost ({error.strerror})", file.path) from error
        raise


class FlushState:
    """What of a log is durable, and what has to follow before more is."""

    __slots__ = (
        "_epochs_saved",
        "_names_synced_version",
        "_names_version",
        "_roll_marks",
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
        self._epochs_saved = epochs_saved
        # Whether earlier runs have synced the folder cannot be told, so the first flush does.
        self._names_version = 1
        self._names_synced_version = 0
        self.truncations = 0

    @property
    def flushing(self) -> bool:
        return self._under_way is not None

    def wrote(self, paths: Iterable[str]) -> None:
        """These files must be synced before the recovery point passes the segments they belong to.

        They may be new, so their names must be, too.
        """
        for path in paths:
            if self.flushing or path not in self._unsynced:
                self.created_file()
            self._writes += 1
            self._unsynced[path] = self._writes

    def may_reach(self, offset: int) -> bool:
        """Whether the recovery point is there, or may come there by a plan that knows nothing of what follows now."""
        return self.flushing or self.recovery_point >= offset

    def rolls(self, mark: str) -> None:
        """What is beside the segment that is being completed will be written now (see `quire.storage.roll_mark`)."""
        self._roll_marks.append(mark)

    def wrote_beside(self, path: str) -> None:
        """This file must be synced before anything in the log counts as durable, but is worth no flush of its own."""
        self._unsynced_beside.append(path)
        self.created_file()

    def created_file(self) -> None:
        self._names_version += 1

    def truncated(self, recovery_point: int) -> None:
        """Nothing from here on counts as durable any more, whatever a plan under way will say."""
        self.truncations += 1
        self.recovery_point = recovery_point

    def start(self, disk: Disk, folder: str, segments: Segments, epochs: bytes, up_to: int) -> FlushPlan | None:
        assert not self.flushing, f"{folder} is being flushed"
        nothing_beside = not self._unsynced and not self._roll_marks and epochs == self._epochs_saved
        if up_to <= self.recovery_point and nothing_beside:
            return None
        plan = FlushPlan(disk, folder, up_to)
        plan.truncations = self.truncations
        plan.files = [segment.file for segment in segments.between(self.recovery_point, up_to)]
        plan.paths = [*self._unsynced, *self._unsynced_beside]
        plan.writes = self._writes
        plan.roll_marks = self._roll_marks.copy()
        if epochs != self._epochs_saved:
            plan.epochs = epochs
        if self._names_version != self._names_synced_version:
            plan.names_version = self._names_version
        self._under_way = plan
        return plan

    def run_now(self, plan: FlushPlan) -> None:
        try:
            plan.run()
        except OSError:
            self.end()
            raise
        self.finish(plan)

    def end(self) -> None:
        """The plan under way, if there is one, did not run to its end, or must not any more."""
        if self._under_way is not None:
            self._under_way.abandoned = True
            self._under_way = None

    def finish(self, plan: FlushPlan) -> None:
        self._under_way = None
        self._unsynced = {path: write for path, write in self._unsynced.items() if write > plan.writes}
        self._unsynced_beside = [path for path in self._unsynced_beside if path not in plan.paths]
        del self._roll_marks[: len(plan.roll_marks)]
        if plan.epochs is not None:
            self._epochs_saved = plan.epochs
        if plan.names_version is not None:
            self._names_synced_version = plan.names_version
        if plan.truncations == self.truncations:
            self.recovery_point = max(self.recovery_point, plan.up_to)
