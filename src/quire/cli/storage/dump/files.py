"""The facts of one file, of any kind."""

from collections.abc import Callable, Iterator
from contextlib import closing

from quire.cli.storage.dump import batches, indexes
from quire.cli.storage.dump.contents import decoder_of
from quire.cli.storage.dump.facts import Fact, problem
from quire.cli.storage.dump.folders import Kind, base_offset_of, contents_of, kind_of, log_beside
from quire.cli.storage.dump.small_files import dump_small_file
from quire.cli.storage.dump.wanted import Wanted
from quire.seams import ReadableFile

Open = Callable[[str], ReadableFile]


def dump_file(path: str, wanted: Wanted, open_file: Open) -> Iterator[Fact]:
    """A `file` fact, then the contents, then, for files with many entries, a fact about the end."""
    kind = kind_of(path)
    with closing(open_file(path)) as file:
        size = file.size()
        yield Fact("file", {"kind": "unknown" if kind is None else kind.value, "size": size})
        if kind is None:
            yield problem(None, "its name is not that of a file in a data directory")
        elif kind in (Kind.LOG, Kind.METADATA_SNAPSHOT):
            decode = decoder_of(wanted.contents or contents_of(path))
            if kind is Kind.LOG:
                yield from batches.dump_log(file, decode, wanted, base_offset_of(path) or 0)
            else:
                yield from batches.dump_metadata_snapshot(file, decode, wanted)
        elif kind is Kind.TRANSACTION_INDEX:
            yield from indexes.dump_transaction_index(file)
        elif kind in (Kind.OFFSET_INDEX, Kind.TIME_INDEX):
            yield from _index(kind, file, open_file)
        else:
            yield from dump_small_file(kind, file.pread(size, 0), path)


def _index(kind: Kind, file: ReadableFile, open_file: Open) -> Iterator[Fact]:
    dump = indexes.dump_offset_index if kind is Kind.OFFSET_INDEX else indexes.dump_time_index
    base_offset = base_offset_of(file.path)
    if base_offset is None:
        yield problem(None, "an index is named by the base offset of its segment, which is needed to read it")
        return
    try:
        log = open_file(log_beside(file.path))
    except FileNotFoundError:
        yield from dump(file, base_offset, None)
        return
    with closing(log):
        yield from dump(file, base_offset, log)
