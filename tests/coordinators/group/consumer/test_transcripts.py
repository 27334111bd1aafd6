"""The stories in `transcripts/`, played and compared word for word.

Each block of a file is a command, a line of dashes and what happened: records as they are written (+) and taken back
(-), and what a consumer was answered (<-). `QUIRE_REWRITE=1 pytest tests/coordinators/group/consumer` writes what
happens now in place of what is there; read the difference before you commit it.
"""

import os
from pathlib import Path

import pytest

from tests.coordinators.group.consumer.story import Story

STORIES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))
LINE = "----"
NEW = ("beat", "join", "leave", "send", "subscribe")
OLD = ("ask", "enter", "old", "quit", "rejoin")
AROUND = ("delete", "describe", "reload", "topic", "wait")


def play(text: str) -> str:
    story: Story | None = None
    told: list[str] = []
    for block in text.strip().split("\n\n"):
        lines = block.split("\n")
        told.extend(line for line in lines if line.startswith("#"))
        commands = [line for line in lines if not line.startswith("#")]
        if not commands:
            told.append("")
            continue
        name, *words = commands[0].split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        if name == "coordinator":
            story = Story(options)
        else:
            assert story is not None, "a story begins with: coordinator [<setting>=<value> ...]"
            assert name in NEW + OLD + AROUND, f"no such command: {commands[0]}"
            getattr(story, name)(*plain, **options)
        told += [commands[0], LINE, *(story.told or ["ok"]), ""]
        story.told.clear()
    return "\n".join(told)


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_coordinator_acts_as_told_in_the_transcript(path: Path) -> None:
    told = path.read_text()
    happened = play(told)
    if os.environ.get("QUIRE_REWRITE"):
        path.write_text(happened)
    else:
        assert happened == told
