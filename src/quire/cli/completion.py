"""`quire completion`: prints the script that completes commands, options and names in a shell.

The script calls `quire` itself with `_QUIRE_COMPLETE` set, and click answers. `quire.cli.name_completion` completes the
names of topics and groups.
"""

import click
from click.shell_completion import get_completion_class

from quire.console.terminal import echo

VARIABLE = "_QUIRE_COMPLETE"


@click.command(
    epilog="""\b
Examples:
  quire completion bash      save it as ~/.local/share/bash-completion/completions/quire
  quire completion zsh       save it as _quire in a folder of $fpath
  quire completion fish      save it as ~/.config/fish/completions/quire.fish

\b
Or, in one session of bash or zsh:
  eval "$(quire completion bash)"
"""
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands, options, topics and groups in SHELL."""
    kind = get_completion_class(shell)
    assert kind is not None
    # Formatted here: click's own method for bash starts bash first, which need not be installed.
    made = kind(click.Group(), {}, "quire", VARIABLE)
    echo(made.source_template % made.source_vars())
