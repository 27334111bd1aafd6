"""The README's examples do what they say."""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_first_example_reads_back_what_it_wrote(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
    example = BLOCKS[0]
    assert "127.0.0.1:9092" in example
    exec(compile(example.replace("127.0.0.1:9092", bootstrap), "README.md", "exec"), {})
    assert capsys.readouterr().out == "b'hello'\n"


def test_the_example_for_tests_sees_its_failure_and_delivers_all_the_same() -> None:
    (example,) = (block for block in BLOCKS if "quire.testing.Cluster" in block)
    exec(compile(example, "README.md", "exec"), {})
