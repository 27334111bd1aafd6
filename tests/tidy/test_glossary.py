"""The glossary explains each word once in a table."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = re.split(r"^##+ ", (ROOT / "docs" / "glossary.md").read_text(), flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.partition("\n")[0])
def test_a_word_has_one_line(section: str) -> None:
    words = Counter(
        word.strip() for row in re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE) for word in row.split(",")
    )
    assert words.pop("word") == 1
    assert words and max(words.values()) == 1, words.most_common(1)
