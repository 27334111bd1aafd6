"""The pipelines that a command names: by name in a folder of files, or by the path of a file."""

import os
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

import click

from quire.console.failure import EXIT_FAILED, EXIT_NOT_FOUND, Failure, fail_with_all
from quire.console.terminal import echo
from quire.spark import INSTALL_SPARK

if TYPE_CHECKING:
    from quire.spark.state_folder import StateFolder

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_FOLDER = "./pipelines"
DEFAULT_STATE = "./quire-pipelines"


def folder_options(command: Command) -> Command:
    """The folder with the pipelines' files, and the folder with their state."""
    folder = click.option(
        "--folder",
        default=DEFAULT_FOLDER,
        show_default=True,
        type=click.Path(file_okay=False),
        help="Folder with the pipelines' files.",
    )
    state = click.option(
        "--state",
        default=DEFAULT_STATE,
        show_default=True,
        type=click.Path(file_okay=False),
        help="Folder for checkpoints, counts and Delta tables.",
    )
    return folder(state(command))


def open_folders(names: Sequence[str], folder: str, state: str) -> "list[StateFolder]":
    """The named pipelines, or all; a name with a slash or .yaml is the path of a file. Creates nothing."""
    try:
        import yaml  # noqa: F401  (only to say what is missing)
    except ImportError:
        raise Failure(f"pipelines need Spark and other packages; install them with: {INSTALL_SPARK}.") from None
    from quire.spark.pipeline_file import Pipeline, PipelineFileError, find_pipelines, load_pipeline
    from quire.spark.state_folder import StateFolder

    if folder != DEFAULT_FOLDER and not os.path.isdir(folder):
        raise Failure(f"the folder {folder} does not exist.", EXIT_NOT_FOUND)
    try:
        by_name = {pipeline.name: pipeline for pipeline in find_pipelines(folder)}
        chosen: list[Pipeline] = []
        missing: list[Failure] = []
        for name in names:
            if os.sep in name or name.endswith((".yaml", ".yml")):
                if os.path.exists(name):
                    chosen.append(load_pipeline(name))
                else:
                    missing.append(Failure(f"{name} does not exist.", EXIT_NOT_FOUND))
            elif name in by_name:
                chosen.append(by_name[name])
            else:
                missing.append(Failure(_unknown(name, list(by_name), folder), EXIT_NOT_FOUND))
        fail_with_all(missing)
    except PipelineFileError as error:
        said = str(error)
        raise Failure(said if said.endswith("?") else f"{said}.", EXIT_FAILED) from error
    return [StateFolder(state, pipeline) for pipeline in (chosen if names else by_name.values())]


def say_if_none(folders: "Sequence[StateFolder]", folder: str) -> None:
    if not folders:
        echo(f"There are no pipelines in {folder}; give the folder with --folder.", err=True)


def make_importable(folders: "Sequence[StateFolder]") -> None:
    """Jobs are imported from the current folder, and from the folders of their files."""
    for folder in [os.getcwd(), *(os.path.dirname(os.path.abspath(found.pipeline.path)) for found in folders)]:
        if folder not in sys.path:
            sys.path.insert(0, folder)


def _unknown(name: str, known: list[str], folder: str) -> str:
    if not known:
        return f"there is no pipeline {name}; {folder} has no pipelines. Give the folder with --folder."
    nearest = get_close_matches(name, known, 1)
    hint = f"did you mean {nearest[0]}?" if nearest else f"{folder} has {', '.join(known)}."
    return f"there is no pipeline {name}; {hint}"
