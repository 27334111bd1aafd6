"""The transcripts in `transcripts/`, replayed and compared word for word.

Each block of a file is a command, a line of dashes and what happened; `stage.py` has the commands. `tests.transcripts`
says how to write them again.
"""

from pathlib import Path

import pytest

from tests.controller.stage import Stage
from tests.transcripts import check, stories


def begin(words: list[str]) -> Stage:
    assert words[0] == "cluster", "a story begins with: cluster <brokers> [elr]"
    return Stage(int(words[1]), words[2:])


@pytest.mark.parametrize("path", stories(Path(__file__).parent / "transcripts"), ids=lambda path: path.stem)
def test_the_controller_follows_the_transcript(path: Path) -> None:
    check(path, begin)
