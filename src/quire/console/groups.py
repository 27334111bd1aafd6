"""Command groups: `LazyGroup` imports a command when it is called, `RootGroup` turns every error into an exit code."""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from quire.console.failure import EXIT_INTERRUPTED, EXIT_TERMINATED, Failure
from quire.console.stopping import Terminated, term_ends_like_ctrl_c

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Entry(NamedTuple):
    """Where a command is, and its line in the list of commands."""

    location: str  # module:attribute
    summary: str


class HelpfulGroup(click.Group):
    """A group that suggests the nearest command for an unknown one, and lists full summaries."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            nearest = _nearest(args[0], self.list_commands(ctx))
            hint = f"; did you mean {nearest}?" if nearest else "."
            ctx.fail(f"There is no command {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            # No summary reaches this limit: a long one continues on the next line instead of being cut off.
            formatter.write_dl([(name, command.get_short_help_str(1_000)) for name, command in commands if command])


def _nearest(wrong: str, names: Sequence[str]) -> str | None:
    """The only name that begins with the text, else the one with the most similar spelling."""
    from difflib import get_close_matches

    beginning = [name for name in names if name.startswith(wrong)]
    found = beginning if len(beginning) == 1 else get_close_matches(wrong, names, n=1)
    return found[0] if found else None


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
        module, _, attribute = entry.location.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.entries.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem[str]]":
        """The commands are completed from the list: importing all of them would take a second."""
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=entry.summary)
            for name, entry in self.entries.items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)


class RootGroup(LazyGroup):
    """The root of a program: turns exceptions and signals into messages and exit codes."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with term_ends_like_ctrl_c():
                result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except Failure as failure:
            raise self._named(failure, ctx) from failure.__cause__
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (KeyboardInterrupt, click.Abort) as end:
            ctx.exit(EXIT_TERMINATED if isinstance(end, Terminated) else EXIT_INTERRUPTED)
        except BrokenPipeError:
            # The reader of our output has closed it. Python would report that again when it closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except Exception as error:
            if os.environ.get("QUIRE_DEBUG"):
                raise
            from quire.console.explain import explain

            raise self._named(explain(error), ctx) from error

    def _named(self, failure: Failure, ctx: click.Context) -> Failure:
        """Sets the program's name, with which the message begins."""
        failure.program = ctx.info_name or failure.program
        return failure
