"""The command `python -m simulator.mutants`: looks for a seed that shows each mutant, and fails if one has none."""

import gc
import os
import sys
import time
from collections.abc import Sequence

import click

from simulator.main import FIXED_HASH_SEED
from simulator.mutants.catalogue import MUTANTS
from simulator.mutants.hunt import MOST_SEEDS, RealCode, hunt

COMMAND = "python -m simulator.mutants"


def main() -> None:
    """Restarts with a fixed hash seed if necessary, as `simulator.main` does."""
    if os.environ.get("PYTHONHASHSEED") != FIXED_HASH_SEED:
        os.environ["PYTHONHASHSEED"] = FIXED_HASH_SEED
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    gc.disable()  # as for the seeds of the real code
    command(prog_name=COMMAND)


@click.command(COMMAND)
@click.argument("names", nargs=-1)
@click.option("--seeds", type=int, default=MOST_SEEDS, show_default=True, help="How many seeds to try for each.")
def command(names: Sequence[str], seeds: int) -> None:
    """Breaks the product in one place at a time. NAMES are parts of the names of mutants; without any, all are run.

    A seed with which the real code breaks a promise shows nothing. Such seeds are listed, and the exit code is 1.
    """
    chosen = [mutant for name, mutant in MUTANTS.items() if not names or any(part in name for part in names)]
    if not chosen:
        raise click.UsageError("No mutant has such a name.")
    escaped = 0
    real_code = RealCode()
    for mutant in chosen:
        started = time.monotonic()
        caught = hunt(mutant, range(seeds), real_code)
        took = f"{time.monotonic() - started:.0f} s"
        if caught is None:
            escaped += 1
            click.echo(f"NOT FOUND  {mutant.name} ({seeds} seeds, {took})")
        else:
            click.echo(f"seed {caught.seed:4}  {mutant.name} ({took}): {caught.violation[:120]}")
    click.echo(f"{len(chosen) - escaped} of {len(chosen)} mutants are found")
    for broken in real_code.broken:
        click.echo(f"BROKEN without a mutant: {broken}")
    sys.exit(1 if escaped or real_code.broken else 0)
