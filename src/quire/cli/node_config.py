"""A node's settings as the command line gathers them: file, environment, --set, and the options that stand above."""

import os
import socket
from collections.abc import Sequence

from quire.cli.options import OWN_VARIABLES
from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError
from quire.config.standalone import CONTROLLER_NAME, EPHEMERAL_SETTINGS

# A free port for the controller even where the clients' is given: the one above theirs may be anybody's in a test run.
EPHEMERAL = {**EPHEMERAL_SETTINGS, "listeners": f"{CONTROLLER_NAME}://127.0.0.1:0"}


def load_config(
    path: str | None,
    assignments: Sequence[str] = (),
    *,
    data: str | None = None,
    listen: str | None = None,
    ephemeral: bool = False,
) -> BrokerConfig:
    """ConfigError where a setting cannot be."""
    file = None
    if path is not None:
        with open(path, "rb") as opened:
            file = (path, _text(path, opened.read()))
    return BrokerConfig.load(
        file=file,
        environment={name: value for name, value in os.environ.items() if name not in OWN_VARIABLES},
        assignments=assignments,
        listen="127.0.0.1:0" if ephemeral and listen is None else listen,
        data_dir=data,
        extra=EPHEMERAL if ephemeral else None,
        hostname=socket.gethostname(),
    )


def _text(path: str, content: bytes) -> str:
    """Java takes these files for Latin-1; people write them in UTF-8, which Latin-1 with umlauts hardly ever is."""
    if b"\0" in content:
        raise ConfigError("", f"{path} is not a text file (it has NUL bytes); name a server.properties.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def name_options(sentence: str, *, data: str | None, path: str | None) -> str:
    """What went wrong, by the options the user gave rather than the settings they stand for."""
    if data is not None or path is None:
        sentence = sentence.replace("log.dirs", "--data")
    return sentence.replace("; set node.id=", "; add --set node.id=") if path is None else sentence
