"""`quire start`: one node in the foreground."""

import logging
import sys
from collections.abc import Sequence
from contextlib import ExitStack

import click

from quire.cli.lazy import EXIT_USAGE, Failure
from quire.cli.options import Assignment, ListenAddress, data_option
from quire.cli.printable import LineFormatter
from quire.cli.terminal import echo

LOG_FORMAT = "%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s"


@click.command(
    epilog="""\b
Examples:
  quire start                                    127.0.0.1:9092, data in ./quire-data
  quire start --data /var/lib/quire --listen :9092    on every interface
  quire start --config server.properties --set num.partitions=6
  quire start --ephemeral                        for tests: free port, data gone afterwards

\b
Settings have Kafka's names. --set wins over the environment (QUIRE_NUM_PARTITIONS=6), which
wins over the file. An empty data directory is formatted by itself.

\b
The controller listens too: on 127.0.0.1, on the port above the clients' (9093 by default)."""
)
@click.option("-c", "--config", "path", type=click.Path(exists=True, dir_okay=False), help="A server.properties.")
@data_option
@click.option("-l", "--listen", type=ListenAddress(), help="Where clients connect.  [default: 127.0.0.1:9092]")
@click.option(
    "--ephemeral",
    is_flag=True,
    help="A free port, settings for tests, and temporary data (unless --data is given: that is kept).",
)
@click.option("-s", "--set", "assignments", type=Assignment(), multiple=True, help="A setting; repeatable.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="How much to say on standard error.",
)
@click.option("--control-stdin", is_flag=True, hidden=True, help="Obey control lines; stop when they end.")
def start(
    path: str | None,
    data: str | None,
    listen: str | None,
    ephemeral: bool,
    assignments: Sequence[str],
    log_level: str,
    control_stdin: bool,
) -> None:
    """Start a node and serve until SIGTERM or Ctrl-C.

    Prints `ready HOST:PORT` on standard output when clients can connect; everything else goes to standard error.
    """
    from quire.cli.node_config import load_config, name_options
    from quire.cli.serve import NodeFailedError, run_node
    from quire.config.errors import ConfigError

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(LOG_FORMAT, "%Y-%m-%dT%H:%M:%S"))
    logging.basicConfig(handlers=[handler], level=log_level.upper(), force=True)
    with ExitStack() as stack:
        if ephemeral and data is None:
            data = _temporary_folder(stack)
        try:
            config = load_config(path, assignments, data=data, listen=listen, ephemeral=ephemeral)
        except ConfigError as error:
            raise Failure(name_options(str(error), data=data, path=path), EXIT_USAGE) from error
        try:
            run_node(config, _announce, control=control_stdin)
        except (ConfigError, NodeFailedError) as error:
            raise Failure(name_options(str(error), data=data, path=path)) from error


def _temporary_folder(stack: ExitStack) -> str:
    import shutil

    from quire.cli.temporary import EPHEMERAL_PREFIX, temporary_folder

    folder = temporary_folder(EPHEMERAL_PREFIX)
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _announce(address: str) -> None:
    echo(f"ready {address}")
    sys.stdout.flush()
