"""`quire dump-log`: shows the files of a data directory, Quire's or Apache Kafka's, without a node."""

import os
import sys
from collections.abc import Iterator, Sequence

import click

from quire.cli.storage.dump.facts import PROBLEM, Fact
from quire.cli.storage.dump.files import dump_file
from quire.cli.storage.dump.folders import Contents, Kind, in_order, kind_of
from quire.cli.storage.dump.json_lines import json_line
from quire.cli.storage.dump.read_only import ReadOnlyFile
from quire.cli.storage.dump.text import TextLines
from quire.cli.storage.dump.wanted import Wanted
from quire.cli.storage.existing import check_exist
from quire.console.failure import Failure
from quire.console.options import IntRange, collect_rarely, json_option
from quire.console.output import count
from quire.console.terminal import echo, echo_many

_INDEXES = (Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TRANSACTION_INDEX)


@click.command(
    "dump-log",
    epilog="""\b
Examples:
  quire dump-log quire-data/orders-0                            a partition: batches, indexes, producers
  quire dump-log --print-data quire-data/orders-0/00000000000000000000.log
  quire dump-log --print-data quire-data/__cluster_metadata-0   the cluster's metadata
  quire dump-log --verify-index-only quire-data                 compares indexes with their logs
  quire dump-log --json --print-data --from-offset 500 quire-data/orders-0

\b
Exit code 1 if a file is damaged or contradicts another; it is shown up to the damage.""",
)
@click.argument("paths", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@click.option("--print-data", is_flag=True, help="Also print records: keys, values, headers.")
@click.option(
    "--as",
    "contents",
    type=click.Choice([each.value for each in Contents]),
    help="What records contain.  [default: by the folder's name]",
)
@click.option(
    "--from-offset", type=IntRange(min=0), default=0, metavar="N", help="Leave out batches before this offset."
)
@click.option("--max-bytes", type=IntRange(min=1), metavar="N", help="Read at most this much of each log.")
@click.option("--verify-index-only", is_flag=True, help="Only compare indexes with their logs, and print differences.")
@json_option
def dump_log(
    paths: Sequence[str],
    print_data: bool,
    contents: str | None,
    from_offset: int,
    max_bytes: int | None,
    verify_index_only: bool,
    as_json: bool,
) -> None:
    """Show the contents of FILEs of a data directory, or of all files of a folder.

    These are logs, indexes, producer and metadata snapshots, checkpoints and other small files. Records of internal
    topics and of the metadata log are decoded. Nothing is changed. No node is needed, but one may be running.
    """
    check_exist(paths)
    collect_rarely()
    wanted = Wanted(
        records=print_data,
        contents=None if contents is None else Contents(contents),
        from_offset=from_offset,
        max_bytes=max_bytes,
    )
    text = TextLines()
    files = problems = 0
    first_problem = ""
    for path in _files(paths):
        if verify_index_only and kind_of(path) not in _INDEXES:
            continue
        files += 1
        for fact in dump_file(path, wanted, ReadOnlyFile):
            if fact.kind == PROBLEM:
                problems += 1
                first_problem = first_problem or _problem_line(path, fact)
            if verify_index_only and fact.kind not in ("file", "index_end", PROBLEM):
                continue
            echo_many([json_line(path, fact)] if as_json else text.lines(path, fact))
    sys.stdout.flush()
    if not files:
        what = "index" if verify_index_only else "file of a data directory"
        echo(f"There is no {what} in {', '.join(paths)}.", err=True)
    if problems:
        raise Failure(f"{count(problems, 'problem')} found; the first: {first_problem}.")


def _files(paths: Sequence[str]) -> Iterator[str]:
    """The named files, and the files in named folders, in a readable order."""
    for path in paths:
        if os.path.isdir(path):
            folder = path.rstrip("/") or "/"
            yield from _files(in_order(folder, os.listdir(folder), os.path.isdir))
        else:
            yield path


def _problem_line(path: str, fact: Fact) -> str:
    position = fact.fields["position"]
    return f"{path}{'' if position is None else f' at position {position}'}: {fact.fields['reason']}"
