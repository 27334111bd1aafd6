"""`quire pipelines`: the pipelines of a folder, one YAML file each: list, run, watch, stop, and start anew."""

import os
import signal
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from quire.cli.lazy import EXIT_USAGE, Failure, HelpfulGroup
from quire.cli.options import cluster_options, connect, json_option
from quire.cli.output import print_json, print_table
from quire.cli.pipelines_run import held, run
from quire.cli.pipelines_state import folder_options, open_folders, say_if_none
from quire.cli.pipelines_view import view
from quire.cli.terminal import echo

if TYPE_CHECKING:
    from quire.spark.state_folder import StateFolder

STOP_TIMEOUT_S = 120.0
LOOK_S = 0.05


@click.group(cls=HelpfulGroup)
def pipelines() -> None:
    """Run data pipelines on Spark, each described in a YAML file."""


pipelines.add_command(run)


@pipelines.command(
    "list",
    epilog="""\b
Examples:
  quire pipelines list
  quire pipelines list --folder ./my-pipelines --json""",
)
@folder_options
@json_option
def list_pipelines(folder: str, state: str, as_json: bool) -> None:
    """List the pipelines there are, and which of them run."""
    folders = open_folders((), folder, state)
    say_if_none(folders, folder)
    if as_json:
        print_json(
            [
                {
                    "name": found.pipeline.name,
                    "about": found.pipeline.about,
                    "file": found.pipeline.path,
                    "queries": [query.name for query in found.pipeline.queries],
                    "processes": list(found.pipeline.processes),
                    "pid": found.runner(),
                }
                for found in folders
            ]
        )
    elif folders:
        print_table(
            ("name", "state", "queries", "about"),
            [
                (
                    found.pipeline.name,
                    _state(found),
                    ",".join([*(query.name for query in found.pipeline.queries), *found.pipeline.processes]),
                    found.pipeline.about,
                )
                for found in folders
            ],
        )


@pipelines.command(
    epilog="""\b
Examples:
  quire pipelines status
  quire pipelines status shop --json"""
)
@click.argument("names", nargs=-1)
@folder_options
@json_option
def status(names: Sequence[str], folder: str, state: str, as_json: bool) -> None:
    """Show how pipelines are doing: rows, lag, time of a batch, state, and what became of the rows."""
    folders = open_folders(names, folder, state)
    say_if_none(folders, folder)
    said: list[dict[str, Any]] = [
        {"name": found.pipeline.name, "running": (pid := found.runner()) is not None, **found.status_in(pid)}
        for found in folders
    ]
    if as_json:
        print_json(said)
    else:
        for found, one in zip(folders, said, strict=True):
            echo(f"{found.pipeline.name}: {_state(found)}")
            if "queries" in one:
                echo(view(one, one["running"]))


@pipelines.command(
    epilog="""\b
Examples:
  quire pipelines stop shop
  quire pipelines stop            every one that runs"""
)
@click.argument("names", nargs=-1)
@folder_options
def stop(names: Sequence[str], folder: str, state: str) -> None:
    """Stop pipelines and wait until they have; the batches under way are finished first."""
    folders = open_folders(names, folder, state)
    say_if_none(folders, folder)
    running = {found.pipeline.name: pid for found in folders if (pid := found.runner())}
    for pid in dict.fromkeys(running.values()):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    for found in folders:
        name = found.pipeline.name
        while name in running and found.runner() == running[name]:
            if time.monotonic() > deadline:
                raise Failure(f"pipeline {name} has not stopped yet; its process is {running[name]}.")
            time.sleep(LOOK_S)
        echo(f"{name}: {'stopped' if name in running else 'was not running'}")


@pipelines.command(
    epilog="""\b
Examples:
  quire pipelines reset shop --yes
  quire pipelines reset shop --yes --results"""
)
@click.argument("names", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do it; without this nothing is removed.")
@click.option("--results", is_flag=True, help="Also delete the topics of its file that it writes.")
@folder_options
@cluster_options
def reset(
    names: Sequence[str], yes: bool, results: bool, folder: str, state: str, servers: str, timeout_s: float
) -> None:
    """Let pipelines start anew: remove their checkpoints, counts and Delta tables.

    The next run reads its topics from where its file says, and writes its results again, after those that are there
    unless --results deletes these.
    """
    folders = open_folders(names, folder, state)
    for found in folders:
        if (pid := found.runner()) is not None:
            raise Failure(
                f"pipeline {found.pipeline.name} runs in process {pid}; stop it first (quire pipelines stop)."
            )
    if not yes:
        raise Failure("this removes checkpoints and Delta tables; say --yes to do it.", EXIT_USAGE)
    for found in folders:
        with held(found):
            gone = found.reset()
        echo(f"{found.pipeline.name}: removed {', '.join(gone) if gone else 'nothing, there was nothing'}")
        if results:
            _delete_results(found, servers, timeout_s)


def _delete_results(found: "StateFolder", servers: str, timeout_s: float) -> None:
    """Topics of the file that the pipeline writes; never one that it only reads."""
    from quire.client.admin.topics import delete_topics
    from quire.protocol.errors import ApiError, ErrorCode
    from quire.spark.pipeline_file import results_of

    names = results_of(found.pipeline)
    with connect(servers, timeout_s) as client:
        for name, refused in client.run(delete_topics(client.cluster, names)).items():
            if isinstance(refused, ApiError) and refused.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise refused
            if refused is None:
                echo(f"{found.pipeline.name}: deleted topic {name}")


def _state(found: "StateFolder") -> str:
    pid = found.runner()
    return "stopped" if pid is None else f"running ({pid})"
