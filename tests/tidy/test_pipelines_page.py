"""docs/pipelines.md lists exactly the options of the source and the sink."""

import re
from pathlib import Path

from pyspark_quire.options import READING, WRITING

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "pipelines.md").read_text()


def test_every_option_for_reading_is_in_the_table_of_the_page() -> None:
    section = PAGE.partition("### Options")[2].partition("\n### ")[0]
    shown = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert sorted(shown) == sorted(option.name for option in READING)


def test_every_option_for_writing_is_in_the_table_of_the_page() -> None:
    section = PAGE.partition("### Options for writing")[2].partition("\n### ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    shown = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(shown) == sorted(option.name for option in WRITING)
