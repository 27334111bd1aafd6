"""`quire verify`: checks data directories of nodes that are not running."""

import sys
from collections.abc import Callable

import click

from quire.cli.lazy import EXIT_NOT_FOUND, Failure
from quire.cli.output import count, print_json
from quire.cli.terminal import echo
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
@click.option("--json", "as_json", is_flag=True, help="Print what is found as JSON.")
def verify(directories: tuple[str, ...], as_json: bool) -> None:
    """Check every checksum, index and checkpoint of data directories that no process uses.

    Nothing is changed. One line for each thing that is wrong, and exit code 1 if there is any. What a crash leaves by
    design, as indexes that the next start makes anew, is not wrong.
    """
    disk = RealDisk()
    for directory in directories:
        if not disk.exists(directory):
            raise Failure(f"{directory} does not exist.", EXIT_NOT_FOUND)
    try:
        found, size = _verified(disk, directories)
    except DataDirectoryError as error:
        raise Failure(str(error)) from error
    findings = [finding for finding in found if not finding.is_made_anew]
    made_anew = {finding.path for finding in found if finding.is_made_anew}
    if as_json:
        print_json([{"path": each.path, "position": each.position, "what": each.what} for each in findings])
    else:
        for finding in findings:
            echo(str(finding))
        if made_anew:
            files = count(len(made_anew), "file beside a log", "files beside logs")
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
