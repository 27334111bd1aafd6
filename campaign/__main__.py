"""The command `python -m campaign`."""

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import click

from campaign.campaign import CHANGED, Campaign
from campaign.ledger import Ledger
from simulator.main import FIXED_HASH_SEED

COMMAND = "python -m campaign"
LEDGER = Path("docs/campaign.jsonl")
CODE = ("src", "simulator")
"""What decides how a run ends. A commit that changes anything else leaves a campaign where it is."""


@click.command(
    COMMAND,
    epilog="""\b
Examples:
  python -m campaign --minutes 60
  python -m campaign --minutes 600 --mutants
  python -m campaign --minutes 600 --jepsen './judge.sh --seconds 60'
  make campaign MINUTES=600 JEPSEN='./judge.sh --seconds 60'

Without --jepsen (JEPSEN=... of make) only seeds and mutants run. docs/simulator.md
has a whole command for Jepsen's workloads on three nodes.""",
)
@click.option("--minutes", type=float, default=10.0, show_default=True, help="How long to run.")
@click.option("--mutants", is_flag=True, help="Look for every mutant first, once for each commit.")
@click.option(
    "--jepsen",
    metavar="COMMAND",
    help="Run this shell command after each round of seeds: an outside judge of real processes. Exit code 0 means no "
    "violation.",
)
@click.option("--batch", type=int, default=20, show_default=True, help="Seeds of one kind before the next kind.")
@click.option("--ledger", type=click.Path(dir_okay=False, path_type=Path), default=LEDGER, show_default=True)
def command(minutes: float, mutants: bool, jepsen: str | None, batch: int, ledger: Path) -> None:
    """Run seeds, mutants and an outside judge for a given time, and append what was found to a ledger.

    It continues where the last campaign ended. Ctrl-C ends it; what has run is recorded. Exit code 1 if a promise was
    broken, a mutant was not found, or some kind of event happened in none of 20 cluster seeds.
    """
    records = Ledger(ledger)
    campaign = Campaign(records, _commit(), time.monotonic() + minutes * 60, batch, click.echo)
    broken = 0
    try:
        broken = campaign.run(mutants=mutants, judge=jepsen)
    except KeyboardInterrupt:
        click.echo("interrupted")
    for line in records.totals():
        click.echo(f"so far, {line}")
    sys.exit(1 if broken else 0)


def _commit() -> str:
    """The last commit that changed what runs; with `+` if files were changed since."""
    shown = subprocess.run(["git", "log", "-1", "--format=%h", "--", *CODE], capture_output=True, text=True)
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", *CODE], capture_output=True)
    return shown.stdout.strip() + (CHANGED if changed.returncode == 1 else "")


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != FIXED_HASH_SEED:
        os.environ["PYTHONHASHSEED"] = FIXED_HASH_SEED
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    gc.disable()
    command(prog_name=COMMAND)
