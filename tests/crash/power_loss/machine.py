"""The machine under a node: its disk forgets at a power loss what was not synced.

    machine = Machine(node.data, folder)
    node.process.environment = machine.environment
    node.start()
    ...
    node.process.kill()
    machine.lose_power(seed)
    node.start()

What survives is decided by the rules of the simulated disk (`simulator.inodes`), which are as harsh as POSIX allows:
unsynced data is lost, kept or torn, in order or sector by sector; so are unsynced names, folder by folder. A process
that is killed while the machine has power loses nothing, synced or not: just start it again.
"""

import shutil
import uuid
from pathlib import Path

from simulator.inodes import FileNode, FolderNode
from simulator.random import SimRandom
from tests.crash.power_loss.journal import Change, read_journal
from tests.crash.preloaded import preloaded

Node = FileNode | FolderNode

_RECORDER = Path(__file__).parent / "recorder.c"
_ONE_CHANGE = 2
"""How many paths one change may concern: a process may have been killed before it recorded its last one."""


class Machine:
    """`root` is the folder of the node's data; the journal is kept in `folder`, which must be elsewhere."""

    def __init__(self, root: Path, folder: Path, *, syncs: bool = True) -> None:
        """Without `syncs` the disk ignores fsync, so that a test can show what it would not detect otherwise."""
        self._root = root.resolve()
        self._journal = folder.resolve() / "power.journal"
        self._boot_id = folder.resolve() / "boot_id"
        self._syncs = syncs
        self.changed_files = 0
        """How many files the power losses have changed, summed over all power losses."""
        self.changed_names = 0
        """How many file names they have removed or restored."""
        self._root.mkdir(parents=True, exist_ok=True)
        self._start()

    @property
    def environment(self) -> dict[str, str]:
        lies = {} if self._syncs else {"POWER_LOSS_NO_SYNC": "1"}
        return {
            "LD_PRELOAD": str(preloaded(_RECORDER)),
            "POWER_LOSS_ROOT": str(self._root),
            "POWER_LOSS_JOURNAL": str(self._journal),
            "POWER_LOSS_BOOT_ID": str(self._boot_id),
            **lies,
        }

    def lose_power(self, seed: int | str) -> None:
        """Call this after the node was killed: leaves what the disk has kept, and starts the machine again."""
        after = self.kept(seed)
        self._count(contents(self._disk), contents(after))
        for path in self._root.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        _write(after, self._root)
        self._start()

    def kept(self, seed: int | str) -> FolderNode:
        """What the disk has kept if the machine loses power now, after the process has been killed."""
        for change in read_journal(self._journal):
            self._apply(change)
        self._journal.unlink(missing_ok=True)
        self._check_that_nothing_was_missed()
        random = SimRandom(seed)
        return self._disk.after_power_loss(random, reorder=random.chance(0.5))

    def _start(self) -> None:
        """From now on the current contents survive a power loss."""
        self._journal.unlink(missing_ok=True)
        self._boot_id.write_text(f"{uuid.uuid4()}\n")
        self._nodes: dict[int, Node] = {}
        """By inode number; the system gives the number of a removed file to the next one."""
        self._disk = self._read(self._root)

    def _read(self, folder: Path) -> FolderNode:
        entries: dict[str, Node] = {}
        for path in sorted(folder.iterdir()):
            entries[path.name] = self._read(path) if path.is_dir() else FileNode(path.read_bytes())
            self._nodes[path.stat().st_ino] = entries[path.name]
        node = self._nodes[folder.stat().st_ino] = FolderNode(entries)
        return node

    # --- Replaying

    def _apply(self, change: Change) -> None:
        match change.kind:
            case "C" | "M":
                node = self._nodes[change.first] = FileNode() if change.kind == "C" else FolderNode()
                folder, name = self._parent(change.path)
                folder.set_name(name, node)
            case "U":
                folder, name = self._parent(change.path)
                folder.set_name(name, None)
            case "R":
                self._rename(change.path, change.target)
            case "S":
                self._nodes[change.first].sync()
            case "W":
                self._file(change.first).write(change.content, change.second)
            case "T":
                self._file(change.first).truncate(change.second)
            case other:
                raise AssertionError(f"the journal has a record of kind {other!r}")

    def _rename(self, source: str, target: str) -> None:
        folder, name = self._parent(source)
        target_folder, target_name = self._parent(target)
        if folder is target_folder:
            folder.rename(name, target_name)
            return
        # Each folder is durable on its own: until both are synced, the file may have both names or none.
        target_folder.set_name(target_name, folder.entries[name])
        folder.set_name(name, None)

    def _parent(self, path: str) -> tuple[FolderNode, str]:
        *above, name = path.split("/")
        folder = self._disk
        for part in above:
            inner = folder.entries[part]
            assert isinstance(inner, FolderNode), path
            folder = inner
        return folder, name

    def _file(self, inode: int) -> FileNode:
        node = self._nodes[inode]
        assert isinstance(node, FileNode), f"inode {inode} is a folder"
        return node

    # --- Self-checks

    def _check_that_nothing_was_missed(self) -> None:
        """The replayed disk must equal the folder that the process has left, except for a change during which it was
        killed."""
        replayed = contents(self._disk)
        found = {
            str(path.relative_to(self._root)): None if path.is_dir() else path.read_bytes()
            for path in self._root.rglob("*")
        }
        different = [path for path in {**replayed, **found} if replayed.get(path, 0) != found.get(path, 0)]
        assert len(different) <= _ONE_CHANGE, f"changes of these files were not recorded: {sorted(different)}"

    def _count(self, before: dict[str, bytes | None], after: dict[str, bytes | None]) -> None:
        self.changed_names += len(before.keys() ^ after.keys())
        self.changed_files += sum(before[path] != after[path] for path in before.keys() & after.keys())


def contents(folder: FolderNode, above: str = "") -> dict[str, bytes | None]:
    """Paths with the bytes of files, and None for folders."""
    found: dict[str, bytes | None] = {}
    for name, node in folder.entries.items():
        if isinstance(node, FileNode):
            found[above + name] = bytes(node.content)
        else:
            found[above + name] = None
            found.update(contents(node, f"{above}{name}/"))
    return found


def _write(folder: FolderNode, target: Path) -> None:
    for name, node in folder.entries.items():
        path = target / name
        if isinstance(node, FileNode):
            path.write_bytes(node.content)
        else:
            path.mkdir()
            _write(node, path)
