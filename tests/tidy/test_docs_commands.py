"""Every command the documentation shows exists."""

import re
from pathlib import Path

import click

from quire.cli.main import quire
from quire_samples.main import samples

ROOT = Path(__file__).resolve().parents[2]
DOCS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS: dict[str, click.Group] = {"quire": quire, "quire-samples": samples}
CODE = re.compile(r"```(?:sh|bash|console|text)?\n(.*?)```|`([^`\n]+)`", re.DOTALL)


def shown_commands() -> list[tuple[str, str]]:
    found = []
    for path in DOCS:
        for block, inline in CODE.findall(path.read_text()):
            for line in (block or inline).splitlines():
                command = line.strip().removeprefix("$ ").strip()
                if command.startswith(("make ", "quire ", "quire-samples ")):
                    found.append((path.name, command))
    return found


def test_every_make_target_in_the_docs_exists() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document, command in shown_commands():
        if command.startswith("make "):
            target = command.split()[1]
            assert target in targets, f"{document} shows `{command}`, and the Makefile has no {target}"


def test_every_quire_command_in_the_docs_exists() -> None:
    for document, command in shown_commands():
        program, *words = command.split()
        if program not in PROGRAMS:
            continue
        here: click.Command = PROGRAMS[program]
        context = click.Context(here)
        for word in words:
            if not isinstance(here, click.Group) or word.startswith(("-", "[", "<")):
                break
            for choice in word.split("|"):
                known = here.get_command(context, choice)
                assert known is not None, f"{document} shows `{command}`, and there is no `{choice}`"
            step = here.get_command(context, word.split("|")[0])
            assert step is not None
            here = step
