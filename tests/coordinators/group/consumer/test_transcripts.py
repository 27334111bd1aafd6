"""The transcripts in `transcripts/`, replayed and compared word for word.

Each block of a file is a command, a line of dashes and what happened: records as they are written (+) and taken back
(-), and what a consumer was answered (<-). `tests.transcripts` says how to write them again.
"""

from pathlib import Path

import pytest

from tests.coordinators.group.consumer.story import Story
from tests.transcripts import check, stories

NEW = ("beat", "join", "leave", "send", "subscribe")
OLD = ("ask", "enter", "old", "quit", "rejoin")
AROUND = ("delete", "describe", "reload", "topic", "wait")


class Play:
    def __init__(self, options: dict[str, str]) -> None:
        self._told = Story(options)
        self.story = self._told.told

    def command(self, name: str, words: list[str]) -> None:
        assert name in NEW + OLD + AROUND, f"no such command: {name} {' '.join(words)}"
        plain = [word for word in words if "=" not in word]
        getattr(self._told, name)(*plain, **options_in(words))


def begin(words: list[str]) -> Play:
    assert words[0] == "coordinator", "a story begins with: coordinator [<setting>=<value> ...]"
    return Play(options_in(words))


def options_in(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words if "=" in word)


@pytest.mark.parametrize("path", stories(Path(__file__).parent / "transcripts"), ids=lambda path: path.stem)
def test_the_coordinator_follows_the_transcript(path: Path) -> None:
    check(path, begin)
