"""The command `python -m simulator`: runs seeds, says what happened, and stops at the first broken promise.

python -m simulator --seed 17            one seed, with a summary; the same digest every time
python -m simulator --seed 17 --trace    every event as it happens
python -m simulator --seeds 2000         the first 2,000 seeds; or a range, --seeds 100-199
"""

import json
import os
import sys
import time
from dataclasses import asdict

import click

from simulator.plan import plan_of
from simulator.world import Outcome, World

COMMAND = "python -m simulator"
FIXED_HASH_SEED = "0"
STORY_LINES = 40


def main() -> None:
    """Starts over with a fixed hash seed if need be: the order of sets and hashes must not differ between runs."""
    if os.environ.get("PYTHONHASHSEED") != FIXED_HASH_SEED:
        os.environ["PYTHONHASHSEED"] = FIXED_HASH_SEED
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    command(prog_name=COMMAND)


@click.command(COMMAND)
@click.option("--seed", type=int, help="Run this one seed and tell what happened.")
@click.option("--seeds", help="Run so many seeds (2000), or a range of them (100-199).")
@click.option("--scale", type=float, default=1.0, show_default=True, help="How much longer than usual each run takes.")
@click.option("--trace", is_flag=True, help="Print every event as it happens.")
@click.option("--json", "as_json", is_flag=True, help="Print each outcome as one line of JSON.")
def command(seed: int | None, seeds: str | None, scale: float, trace: bool, as_json: bool) -> None:
    """Simulates a whole node with its clients and every kind of fault, on virtual time, from a seed."""
    if (seed is None) == (seeds is None):
        raise click.UsageError("Give either --seed or --seeds.")
    several = seed is None
    chosen = _parse_seeds(seeds) if seeds is not None else [seed or 0]
    started = time.monotonic()
    for count, each in enumerate(chosen, 1):
        outcome = World(each, plan_of(each, scale=scale), echo=click.echo if trace else None).run()
        if as_json:
            click.echo(json.dumps(asdict(outcome)))
        elif outcome.violation is not None or not several:
            click.echo(_clear_line() * several + summary(outcome, scale))
        elif several:
            _show_progress(count, each, time.monotonic() - started)
        if outcome.violation is not None:
            sys.exit(1)
    if several and not as_json:
        click.echo(f"{_clear_line()}{len(list(chosen))} seeds hold, {time.monotonic() - started:.0f} s")


def summary(outcome: Outcome, scale: float = 1.0) -> str:
    """A run in a few lines; with what led up to it and how to repeat it, if a promise was broken."""
    counts = outcome.counts
    lines = [
        f"seed {outcome.seed}: {outcome.virtual_ms / 1000:.1f} s of virtual time, {outcome.events} events, "
        f"{outcome.lives} lives of the node",
        f"  faults    {_listed(outcome.faults)}",
        f"  requests  {counts.requests} sent, {counts.lost_requests} without an answer, "
        f"{counts.connections} connections",
        f"  records   {counts.records_sent} sent, {counts.records_acknowledged} acknowledged, "
        f"{counts.records_read} read, {counts.records_lost} lost with the power",
        f"  topics    {counts.topics_created} created, {counts.topics_deleted} deleted",
        f"  coordinators {counts.sessions} transactional sessions, {counts.transactions_committed} transactions "
        f"committed, {counts.transactions_aborted} aborted, {counts.assignments} assignments to members, "
        f"{counts.offsets_committed} offsets committed",
        f"  errors    {_listed(counts.errors)}",
        f"  checks    {counts.checks}",
        f"  digest    {outcome.digest}",
    ]
    if outcome.violation is None:
        return "\n".join([*lines, "every promise holds"])
    story = [f"  {line}" for line in outcome.story[-STORY_LINES:]]
    again = f"run it again with: {COMMAND} --seed {outcome.seed}" + (f" --scale {scale:g}" if scale != 1.0 else "")
    return "\n".join([*lines, "", *story, "", f"BROKEN with seed {outcome.seed}: {outcome.violation}", again])


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


def _parse_seeds(text: str) -> range:
    first, dash, last = text.partition("-")
    try:
        return range(int(first), int(last) + 1) if dash else range(int(first))
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither a number nor a range such as 100-199", param_hint="--seeds"
        ) from None


def _show_progress(count: int, seed: int, seconds: float) -> None:
    if sys.stderr.isatty() or count % 100 == 0:
        end = "\r" if sys.stderr.isatty() else "\n"
        click.echo(f"seed {seed} holds, {count} seeds in {seconds:.0f} s ", nl=False, err=True)
        click.echo(end, nl=False, err=True)


def _clear_line() -> str:
    return "\x1b[2K\r" if sys.stdout.isatty() else ""
