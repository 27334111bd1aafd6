"""The stories in `transcripts/`: classic groups, request by request. See `stage` for the commands."""

from pathlib import Path

import pytest

from tests.coordinators.group.classic.stage import begin
from tests.transcripts import check, stories


@pytest.mark.parametrize("path", stories(Path(__file__).parent / "transcripts"), ids=lambda path: path.stem)
def test_classic_groups_act_as_told_in_the_transcript(path: Path) -> None:
    check(path, begin)
