"""`quire verify`: checks data directories of nodes that are not running."""

import sys
from collections.abc import Callable

import click

from quire.cli.node.local.description import data_directories
from quire.cli.storage.existing import check_exist
from quire.console.failure import Failure
from quire.console.output import count, print_json
from quire.console.terminal import echo
from quire.real.disk import RealDisk
from quire.storage.errors import DataDirectoryError
from quire.storage.verify.directory import log_bytes, verify_directory
from quire.storage.verify.finding import Finding


@click.command(
    epilog="""\b
Examples:
  quire verify quire-data
  quire verify quire-data --json
"""
)
@click.argument("directories", nargs=-1, required=True, metavar="DIR...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(directories: tuple[str, ...], as_json: bool) -> None:
    """Check every checksum, index and checkpoint of data directories that no process uses.

    The folder of a cluster (`quire start --nodes`) stands for the directories of its nodes.

    Nothing is changed. Each problem is one line, and the exit code is then 1. What a crash leaves by design, such as
    indexes that the next start rebuilds, is not a problem.
    """
    disk = RealDisk(read_only=True)
    directories = tuple(each for folder in directories for each in data_directories(disk, folder))
    check_exist(directories)
    try:
        found, size = _verified(disk, directories)
    except DataDirectoryError as error:
        raise Failure(str(error)) from error
    findings = [finding for finding in found if not finding.is_rebuilt_at_start]
    rebuilt = {finding.path for finding in found if finding.is_rebuilt_at_start}
    if as_json:
        print_json([{"path": each.path, "position": each.position, "what": each.what} for each in findings])
    else:
        for finding in findings:
            echo(str(finding))
        if rebuilt:
            files = count(len(rebuilt), "file beside a log", "files beside logs")
            echo(f"not stopped cleanly: {files} (indexes) will be rebuilt at the next start", err=True)
        echo(f"{size / 1e6:,.1f} MB checked, {count(len(findings), 'finding')}", err=bool(findings))
    if findings:
        raise click.exceptions.Exit(1)


def _verified(disk: RealDisk, directories: tuple[str, ...]) -> tuple[list[Finding], int]:
    size = sum(log_bytes(disk, directory) for directory in directories if disk.is_dir(directory))
    with click.progressbar(
        length=max(size, 1), label="verifying", file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        progress: Callable[[int], None] = bar.update
        return [finding for directory in directories for finding in verify_directory(disk, directory, progress)], size
