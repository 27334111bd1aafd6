"""The README's examples do what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_first_example_reads_back_what_it_wrote(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
    example = BLOCKS[0]
    assert "127.0.0.1:9092" in example
    exec(compile(example.replace("127.0.0.1:9092", bootstrap), "README.md", "exec"), {})
    assert capsys.readouterr().out == "b'hello'\n"


@pytest.mark.parametrize("nodes", ["Cluster()", "Cluster(nodes=3)"])
def test_the_examples_for_tests_see_their_failure_and_still_deliver(nodes: str) -> None:
    (imports,) = (block for block in BLOCKS if "import quire.testing" in block)
    (example,) = (block for block in BLOCKS if f"quire.testing.{nodes}" in block)
    if example != imports:
        example = imports.partition("\n\n")[0] + "\n" + example
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout + done.stderr == "", "the client's last lines would alarm a new user"
