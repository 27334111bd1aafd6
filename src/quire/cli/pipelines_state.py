"""Which pipelines a command is about: by name in a folder of files, or by the path of a file."""

import os
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

import click

from quire.cli.lazy import EXIT_FAILED, EXIT_NOT_FOUND, Failure
from quire.cli.terminal import echo
from quire.spark import INSTALL_SPARK

if TYPE_CHECKING:
    from quire.spark.state_folder import StateFolder

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_FOLDER = "./pipelines"
DEFAULT_STATE = "./quire-pipelines"


def folder_options(command: Command) -> Command:
    """Where the files are, and where what is running leaves its state."""
    folder = click.option(
        "--folder",
        default=DEFAULT_FOLDER,
        show_default=True,
        type=click.Path(file_okay=False),
        help="Where the pipelines' files are.",
    )
    state = click.option(
        "--state",
        default=DEFAULT_STATE,
        show_default=True,
        type=click.Path(file_okay=False),
        help="Where checkpoints, counts and Delta tables go.",
    )
    return folder(state(command))


def open_folders(names: Sequence[str], folder: str, state: str) -> "list[StateFolder]":
    """The pipelines named, or all; a name with a slash or .yaml is the path of a file. Nothing is created yet."""
    try:
        import yaml  # noqa: F401  (only to say what is missing)
    except ImportError:
        raise Failure(f"pipelines need more than Quire alone; install it with: {INSTALL_SPARK}.") from None
    from quire.spark.pipeline_file import Pipeline, PipelineFileError, find_pipelines, load_pipeline
    from quire.spark.state_folder import StateFolder

    if folder != DEFAULT_FOLDER and not os.path.isdir(folder):
        raise Failure(f"the folder {folder} does not exist.", EXIT_NOT_FOUND)
    try:
        by_name = {pipeline.name: pipeline for pipeline in find_pipelines(folder)}
        chosen: list[Pipeline] = []
        for name in names:
            if os.sep in name or name.endswith((".yaml", ".yml")):
                if not os.path.exists(name):
                    raise Failure(f"{name} does not exist.", EXIT_NOT_FOUND)
                chosen.append(load_pipeline(name))
            elif name in by_name:
                chosen.append(by_name[name])
            else:
                raise Failure(_unknown(name, list(by_name), folder), EXIT_NOT_FOUND)
    except PipelineFileError as error:
        said = str(error)
        raise Failure(said if said.endswith("?") else f"{said}.", EXIT_FAILED) from error
    return [StateFolder(state, pipeline) for pipeline in (chosen if names else by_name.values())]


def say_if_none(folders: "Sequence[StateFolder]", folder: str) -> None:
    if not folders:
        echo(f"There is no pipeline in {folder}; --folder says where the files are.", err=True)


def make_importable(folders: "Sequence[StateFolder]") -> None:
    """Jobs are found from here, and beside their files."""
    for place in [os.getcwd(), *(os.path.dirname(os.path.abspath(found.pipeline.path)) for found in folders)]:
        if place not in sys.path:
            sys.path.insert(0, place)


def _unknown(name: str, known: list[str], folder: str) -> str:
    if not known:
        return f"there is no pipeline {name}, and none at all in {folder}; --folder says where the files are."
    nearest = get_close_matches(name, known, 1)
    hint = f"did you mean {nearest[0]}?" if nearest else f"{folder} has {', '.join(known)}."
    return f"there is no pipeline {name}; {hint}"
