"""`quire version`: the version, and what it runs on. `quire --version` prints only the first line."""

import platform

import click

from quire import __version__
from quire.console.options import json_option
from quire.console.output import print_json
from quire.console.terminal import echo
from quire.protocol.records.records_native import COMPILED

KAFKA_VERSION = "4.3"


@click.command(epilog="\b\nExamples:\n  quire version\n  quire version --json")
@json_option
def version(as_json: bool) -> None:
    """Show the versions of Quire, of Kafka's protocol and of Python."""
    system = f"{platform.system()} {platform.machine()}"
    if as_json:
        print_json(
            {
                "quire": __version__,
                "kafka": KAFKA_VERSION,
                "python": platform.python_version(),
                "system": system,
                "compiled": COMPILED,
            }
        )
        return
    loops = "compiled" if COMPILED else "interpreted, because there was no C compiler at the installation"
    echo(f"quire {__version__}")
    echo(f"Kafka's protocol as of Apache Kafka {KAFKA_VERSION}")
    echo(f"Python {platform.python_version()} on {system}; record loops: {loops}")
