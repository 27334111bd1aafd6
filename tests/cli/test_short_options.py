"""A letter means the same in every command."""

from collections import defaultdict
from collections.abc import Iterator

import click

from tests.cli.tree import commands

SAME = {"--partitions": "--partition"}
"""Long options that share a letter because they are about the same thing: which partition, or how many."""


def letters() -> Iterator[tuple[str, str, set[str]]]:
    """Every short option, the command that has it, and its long names."""
    for name, command in commands():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                long = {SAME.get(each, each) for each in parameter.opts if each.startswith("--")}
                yield from ((each, name, long) for each in parameter.opts if not each.startswith("--"))


def test_a_letter_has_one_meaning_in_all_commands() -> None:
    found: dict[str, dict[str, set[str]]] = defaultdict(dict)
    for letter, name, long in letters():
        found[letter][name] = long
    assert len(found) > 15, "the walk has found the commands"
    unclear = {letter: uses for letter, uses in found.items() if not set.intersection(*uses.values())}
    assert not unclear


def test_a_setting_has_the_same_options_wherever_it_is_given() -> None:
    given = {
        name: sorted(parameter.opts)
        for name, command in commands()
        for parameter in command.params
        if "--set" in parameter.opts
    }
    assert given.pop("topics create") == ["--config", "--set", "-s"], "--config as in kafka-topics"
    assert set(given) == {"start", "storage format", "topics alter", "configs alter"}
    assert all(opts == ["--set", "-s"] for opts in given.values())
