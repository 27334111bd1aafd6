"""The example in docs/pipelines.md is the one in examples/, which the tests run."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "pipelines.md").read_text()
EXAMPLE = ROOT / "examples" / "big_orders"


def test_the_pipeline_in_the_docs_is_the_one_that_is_tested() -> None:
    code = (EXAMPLE / "big_orders.py").read_text().partition('"""\n\n')[2].replace("  # noqa: N812", "")
    assert code in PAGE
    assert (EXAMPLE / "big_orders.yaml").read_text() in PAGE
