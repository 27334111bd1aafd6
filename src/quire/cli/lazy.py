"""Commands that are imported when they are called, and failures that end as one sentence and an exit code."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
EXIT_NOT_FOUND = 4
EXIT_INTERRUPTED = 130


class Failure(click.ClickException):
    """One sentence for standard error, and the exit code."""

    def __init__(self, sentence: str, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code  # type: ignore[misc]

    def show(self, file: Any = None) -> None:
        from quire.cli.terminal import echo

        echo(f"quire: {self.message}", err=True)


class Entry(NamedTuple):
    """Where a command is, and its line in the list of commands."""

    place: str  # module:attribute
    summary: str


class HelpfulGroup(click.Group):
    """A group that answers a command it does not have with the nearest one, and lists each with a whole sentence."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            from difflib import get_close_matches

            nearest = get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f"; did you mean {nearest[0]}?" if nearest else "."
            ctx.fail(f"There is no command {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            # The limit is one that no summary reaches: a long one goes on in the next line instead of being cut off.
            formatter.write_dl([(name, command.get_short_help_str(1_000)) for name, command in commands if command])


class LazyGroup(HelpfulGroup):
    """A group that lists its commands without importing them."""

    def __init__(self, *args: Any, entries: Mapping[str, Entry] | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.entries = dict(entries or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.place.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.entries.items()])


class RootGroup(LazyGroup):
    """The outermost group, where every failure passes on its way out."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (KeyboardInterrupt, click.Abort):
            ctx.exit(EXIT_INTERRUPTED)
        except BrokenPipeError:
            # Whoever read our output has had enough. Python would complain again while it closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except Exception as error:
            if os.environ.get("QUIRE_DEBUG"):
                raise
            from quire.cli.failures import explain

            raise explain(error) from error
