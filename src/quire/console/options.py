"""Options that several commands share, and their types."""

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from quire.client.shell_blocking import BlockingClient

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_SERVER = "127.0.0.1:9092"

# Variables for the command line itself; every other QUIRE_... variable is a setting of a node.
OWN_VARIABLES = ("QUIRE_BOOTSTRAP", "QUIRE_DEBUG")


class Setting(click.ParamType[tuple[str, str]]):
    """`KEY=VALUE`, split at the first equals sign."""

    name = "KEY=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, separator, content = str(value).partition("=")
        if not separator or not key:
            self.fail(f"{value!r} is not KEY=VALUE", param, ctx)
        return key, content


class Assignment(click.ParamType[str]):
    """`KEY=VALUE`, checked but not split: the code that merges settings from all sources splits it."""

    name = "KEY=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        key, separator, _ = str(value).partition("=")
        if not separator or not key.strip():
            self.fail(f"{value!r} is not KEY=VALUE", param, ctx)
        return str(value)


class IntRange(click.IntRange):
    """Whole numbers from `min` on. Its error message gives the limit, where click's gives only the type."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            self.fail(f"{value!r} is not a whole number of at least {self.min}", param, ctx)


class FloatRange(click.FloatRange):
    """Numbers from `min` on, or above `min` if `min_open`; otherwise like `IntRange`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return float(super().convert(value, param, ctx))
        except click.BadParameter:
            bound = "above" if self.min_open else "of at least"
            self.fail(f"{value!r} is not a number {bound} {self.min}", param, ctx)


class ListenAddress(click.ParamType[str]):
    """`HOST:PORT`; an empty host means all interfaces, port 0 a free port."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        _, colon, port = str(value).rpartition(":")
        if not colon and port.isascii() and port.isdigit():
            self.fail(f"{value!r} has no host; write 127.0.0.1:{port}, or :{port} for every interface", param, ctx)
        if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
            self.fail(f"{value!r} is not HOST:PORT with a port of 1 to 65535 (0 chooses a free one)", param, ctx)
        return str(value)


class Pattern(click.ParamType[re.Pattern[str]]):
    """A regular expression."""

    name = "REGEX"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> re.Pattern[str]:
        try:
            return re.compile(value)
        except re.error as error:
            self.fail(f"{value!r} is not a regular expression ({error})", param, ctx)


def data_option(command: Command) -> Command:
    """Click does not check that the directory is readable: the code that opens it has a better message."""
    where = click.Path(file_okay=False, readable=False)
    return click.option("-d", "--data", type=where, help="Data directory.  [default: ./quire-data]")(command)


def servers_option(command: Command) -> Command:
    return click.option(
        "-b",
        "--bootstrap-server",
        "servers",
        envvar="QUIRE_BOOTSTRAP",
        default=DEFAULT_SERVER,
        show_default=True,
        show_envvar=True,
        metavar="HOST:PORT,...",
        help="Brokers to connect to first.",
    )(command)


def timeout_option(command: Command, meaning: str = "Time-out for each request.") -> Command:
    return click.option(
        "--timeout",
        "timeout_s",
        type=FloatRange(min=0, min_open=True),
        default=30,
        show_default=True,
        metavar="SECONDS",
        help=meaning,
    )(command)


def watch_options(command: Command) -> Command:
    """The options of commands that can show a live view."""
    interval = click.option(
        "--interval",
        "interval_s",
        type=FloatRange(min=0.1),
        default=2,
        show_default=True,
        metavar="SECONDS",
        help="How often --watch refreshes.",
    )
    return click.option("-w", "--watch", "live", is_flag=True, help="Refresh the view until Ctrl-C.")(interval(command))


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def json_values_option(command: Command) -> Command:
    return click.option(
        "--json-values", is_flag=True, help="As --json, with values that are JSON as JSON instead of as text."
    )(command)


def cluster_options(command: Command) -> Command:
    """The options of every command that connects to a cluster."""
    return servers_option(timeout_option(command))


def collect_rarely() -> None:
    """For commands that create millions of short-lived records: none is in a cycle, so collecting is wasted work."""
    gc.freeze()
    gc.set_threshold(1_000_000)


@contextmanager
def connect(servers: str, timeout_s: float) -> "Iterator[BlockingClient]":
    from quire.client.shell_blocking import BlockingClient

    with BlockingClient(servers, client_id="quire-cli", request_timeout_ms=timeout_s * 1000) as client:
        yield client
