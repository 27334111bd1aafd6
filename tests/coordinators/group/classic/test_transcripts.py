"""The transcripts in `transcripts/`: classic groups, request by request. See `stage` for the commands."""

from pathlib import Path

import pytest

from tests.coordinators.group.classic.stage import begin
from tests.transcripts import check, stories


@pytest.mark.parametrize("path", stories(Path(__file__).parent / "transcripts"), ids=lambda path: path.stem)
def test_classic_groups_follow_the_transcript(path: Path) -> None:
    check(path, begin)
