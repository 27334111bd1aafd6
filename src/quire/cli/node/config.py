"""Collects a node's settings: from the file, the environment, --set, and the other options, which take precedence."""

import os
import socket
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError, ContradictionError
from quire.config.standalone import CONTROLLER_NAME, EPHEMERAL_SETTINGS
from quire.console.options import OWN_VARIABLES

# The controller gets a free port even if the clients' port is given: in a test run the next port may be in use.
EPHEMERAL = {**EPHEMERAL_SETTINGS, "listeners": f"{CONTROLLER_NAME}://127.0.0.1:0"}


class StartOptions(NamedTuple):
    """The options of `quire start` that say how nodes are configured."""

    path: str | None = None
    assignments: Sequence[str] = ()
    data: str | None = None
    listen: str | None = None
    ephemeral: bool = False
    temporary_dir: str | None = None


def load_config_of(
    options: StartOptions, overrides: Mapping[str, str] | None = None, defaults: Mapping[str, str] | None = None
) -> BrokerConfig:
    return load_config(
        options.path,
        options.assignments,
        data=options.data,
        listen=options.listen,
        ephemeral=options.ephemeral,
        temporary_dir=options.temporary_dir,
        overrides=overrides,
        defaults=defaults,
    )


def load_config(
    path: str | None,
    assignments: Sequence[str] = (),
    *,
    data: str | None = None,
    listen: str | None = None,
    ephemeral: bool = False,
    temporary_dir: str | None = None,
    overrides: Mapping[str, str] | None = None,
    defaults: Mapping[str, str] | None = None,
) -> BrokerConfig:
    """ConfigError if a setting is not valid. `temporary_dir` is for the data of an ephemeral node without `data`.

    `overrides` are above all else, and say nothing about what else a node needs. `defaults` are below all else.
    """
    file = None
    if path is not None:
        with open(path, "rb") as opened:
            file = (path, _text(path, opened.read()))
    return BrokerConfig.load(
        file=file,
        environment={name: value for name, value in os.environ.items() if name not in OWN_VARIABLES},
        assignments=assignments,
        listen=listen,
        data_dir=data,
        temporary_dir=temporary_dir,
        free_port=ephemeral,
        extra={**(defaults or {}), **(EPHEMERAL if ephemeral else {})},
        overrides=overrides,
        hostname=socket.gethostname(),
    )


def _text(path: str, content: bytes) -> str:
    """Java reads these files as Latin-1, people write UTF-8; Latin-1 with umlauts is hardly ever valid UTF-8."""
    if b"\0" in content:
        raise ConfigError("", f"{path} is not a text file (it has NUL bytes); name a server.properties.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def name_options(error: Exception, *, data: str | None, path: str | None, listen: str | None = None) -> str:
    """The error message, with the options that the user gave instead of the settings that they stand for."""
    sentence = str(error)
    if isinstance(error, ContradictionError):
        return sentence
    if data is not None or path is None:
        sentence = sentence.replace("log.dirs", "--data")
    if listen is not None or path is None:
        sentence = sentence.replace("such as advertised.listeners=", "such as --set advertised.listeners=")
    return sentence.replace("; set node.id=", "; add --set node.id=") if path is None else sentence
