"""Apache Kafka's DumpLogSegments on every file of a data directory that it can read."""

from pathlib import Path

from interop.apache_kafka import ApacheKafka

SUFFIXES = {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint"}
DECODERS = {
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
}
"""The type of decoder for each internal topic."""
_FACTS = ("baseOffset: ", "| offset: ", "offset: ", "timestamp: ", "version: ", "producerId: ")
_NOTHING_NEW = ("Log starting offset: ", "Snapshot end offset: ")


class ComplaintError(AssertionError):
    """DumpLogSegments reported a problem."""


def dump_directory(kafka: ApacheKafka, data_dir: Path) -> str:
    """Its output: one fact per line, with `== path` above the facts of a file."""
    folders = sorted(path for path in data_dir.iterdir() if path.is_dir())
    return "".join(dump_folder(kafka, data_dir, folder) for folder in folders)


def _is_unused_index(path: Path) -> bool:
    """An index with preallocated zeros only, which DumpLogSegments cannot read."""
    return path.suffix in {".index", ".timeindex"} and path.stat().st_size > 0 and not path.read_bytes().strip(b"\0")


def dump_folder(kafka: ApacheKafka, data_dir: Path, folder: Path) -> str:
    """The output for one topic partition, or the metadata log."""
    files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and not _is_unused_index(path))
    decoder = DECODERS.get(folder.name.rpartition("-")[0])
    options = ["--print-data-log", *([decoder] if decoder else [])]
    said = []
    for line in kafka.tool("DumpLogSegments", "--files", ",".join(map(str, files)), *options).splitlines():
        if line.startswith("Dumping "):
            said.append(f"== {Path(line.removeprefix('Dumping ')).relative_to(data_dir)}\n")
        elif line.startswith(_FACTS) and "isvalid: false" not in line:
            said.append(f"{line}\n")
        elif line and not line.startswith(_NOTHING_NEW) and not line.endswith(" is empty."):
            raise ComplaintError(f"DumpLogSegments says of {folder.name}: {line}")
    return "".join(said)
