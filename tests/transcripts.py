"""Transcripts in plain text, replayed and compared word for word.

Each block of a file is a command, a line of dashes and what happened. `QUIRE_REWRITE=1 pytest FOLDER` replaces the
recorded text with what happens now; read the difference before you commit it.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

LINE = "----"


class Stage(Protocol):
    story: list[str]
    """The lines since it was last cleared."""

    def command(self, name: str, words: list[str]) -> None: ...


def stories(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*.txt"))
    assert found, f"no stories in {folder}"
    return found


def play(text: str, begin: Callable[[list[str]], Stage]) -> str:
    """`begin` gets the words of the first command; the stage that it returns gets all others."""
    stage: Stage | None = None
    told: list[str] = []
    for block in text.strip().split("\n\n"):
        lines = block.split("\n")
        told.extend(line for line in lines if line.startswith("#"))
        commands = [line for line in lines if not line.startswith("#")]
        if not commands:
            told.append("")
            continue
        words = commands[0].split()
        if stage is None:
            stage = begin(words)
        else:
            stage.command(words[0], words[1:])
        told += [commands[0], LINE, *(stage.story or ["ok"]), ""]
        stage.story.clear()
    return "\n".join(told)


def check(path: Path, begin: Callable[[list[str]], Stage]) -> None:
    told = path.read_text()
    happened = play(told, begin)
    if os.environ.get("QUIRE_REWRITE"):
        path.write_text(happened)
    else:
        assert happened == told
