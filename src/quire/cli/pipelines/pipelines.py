"""`quire pipelines`: lists, runs, watches, stops and resets the pipelines of a folder, each a YAML file."""

import os
import signal
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from quire.cli.pipelines.run import held, run
from quire.cli.pipelines.state import folder_options, open_folders, say_if_none
from quire.cli.reports import fail_for_each
from quire.console.failure import EXIT_USAGE, Failure
from quire.console.groups import HelpfulGroup
from quire.console.options import cluster_options, connect, json_option
from quire.console.output import print_json, print_table
from quire.console.terminal import echo
from quire.spark.status_table import view

if TYPE_CHECKING:
    from quire.spark.state_folder import StateFolder

STOP_TIMEOUT_S = 120.0
LOOK_S = 0.05


@click.group(
    cls=HelpfulGroup,
    epilog="""\b
Examples:
  quire pipelines list
  quire pipelines run shop
  quire pipelines status shop""",
)
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
    """List pipelines and their states."""
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
    """Show the progress of pipelines: rows, lag, duration of a batch, state, and counts of rows by result."""
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
  quire pipelines stop            all that are running"""
)
@click.argument("names", nargs=-1)
@folder_options
@json_option
def stop(names: Sequence[str], folder: str, state: str, as_json: bool) -> None:
    """Stop pipelines, and wait until they have finished the current batches."""
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
                raise Failure(f"pipeline {name} has not stopped yet; its process id is {running[name]}.")
            time.sleep(LOOK_S)
        if not as_json:
            echo(f"{name}: {'stopped' if name in running else 'was not running'}")
    if as_json:
        print_json([{"name": found.pipeline.name, "stopped": found.pipeline.name in running} for found in folders])


@pipelines.command(
    epilog="""\b
Examples:
  quire pipelines reset shop --yes
  quire pipelines reset shop --yes --results"""
)
@click.argument("names", nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Confirm; without this, nothing is removed.")
@click.option("--results", is_flag=True, help="Also delete the topics that the pipeline writes.")
@folder_options
@json_option
@cluster_options
def reset(
    names: Sequence[str],
    yes: bool,
    results: bool,
    folder: str,
    state: str,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Reset pipelines: remove their checkpoints, counts and Delta tables.

    The next run reads its topics from the start that its file gives, and writes its results again. Without --results,
    the earlier results stay in their topics.
    """
    folders = open_folders(names, folder, state)
    for found in folders:
        if (pid := found.runner()) is not None:
            raise Failure(
                f"pipeline {found.pipeline.name} runs in process {pid}; stop it first (quire pipelines stop)."
            )
    if not yes:
        raise Failure("this removes checkpoints and Delta tables; add --yes to confirm.", EXIT_USAGE)
    done: list[dict[str, object]] = []
    for found in folders:
        name = found.pipeline.name
        with held(found):
            gone = found.reset()
        if not as_json:
            echo(f"{name}: removed {', '.join(gone) if gone else 'nothing, because there was nothing'}")
        deleted = _delete_results(found, servers, timeout_s) if results else []
        if not as_json:
            for topic in deleted:
                echo(f"{name}: deleted topic {topic}")
        done.append({"name": name, "removed": list(gone), "deleted_topics": deleted})
    if as_json:
        print_json(done)


def _delete_results(found: "StateFolder", servers: str, timeout_s: float) -> list[str]:
    """Deletes the topics of the file that the pipeline writes, never one that it only reads; returns those deleted."""
    from quire.client.admin.topics import delete_topics
    from quire.protocol.errors import ApiError, ErrorCode
    from quire.spark.pipeline_file import results_of

    names = results_of(found.pipeline)
    with connect(servers, timeout_s) as client:
        results = client.run(delete_topics(client.cluster, names))
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    fail_for_each({name: e for name, e in results.items() if isinstance(e, ApiError) and e.code != missing})
    return [name for name, refused in results.items() if refused is None]


def _state(found: "StateFolder") -> str:
    pid = found.runner()
    return "stopped" if pid is None else f"running ({pid})"
