"""The command `python -m simulator`: runs seeds, prints a summary, and stops at the first broken promise.

python -m simulator --seed 17            one seed, with a summary; the same digest every time
python -m simulator --seed 17 --trace    every event as it happens
python -m simulator --seeds 2000         the first 2,000 seeds; or a range, --seeds 100-199
"""

import gc
import json
import os
import sys
import time
from dataclasses import asdict
from typing import NamedTuple

import click

from simulator.cluster_plan import cluster_plan_of, quorum_plan_of
from simulator.coverage import FEWEST_SEEDS, Coverage
from simulator.plan import Plan, plan_of
from simulator.report import RunReport
from simulator.world import World

COMMAND = "python -m simulator"
FIXED_HASH_SEED = "0"
STORY_LINES = 40


def main() -> None:
    """Restarts with a fixed hash seed if necessary: the order of sets must not differ between runs."""
    if os.environ.get("PYTHONHASHSEED") != FIXED_HASH_SEED:
        os.environ["PYTHONHASHSEED"] = FIXED_HASH_SEED
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    gc.disable()  # a run creates little cyclic garbage: collecting it between runs is a sixth faster
    command(prog_name=COMMAND)


@click.command(COMMAND)
@click.option("--seed", type=int, help="Run this seed and print a summary.")
@click.option("--seeds", help="Run this number of seeds (2000), or a range (100-199).")
@click.option("--nodes", type=click.IntRange(1, 5), help="Run a cluster of this many nodes.")
@click.option("--clusters", is_flag=True, help="Run clusters of three to five nodes, as each seed says.")
@click.option("--quorums", is_flag=True, help="Run metadata quorums without clients.")
@click.option("--scale", type=float, default=1.0, show_default=True, help="Factor for the length of each run.")
@click.option("--trace", is_flag=True, help="Print every event as it happens.")
@click.option("--json", "as_json", is_flag=True, help="Print each report as one line of JSON.")
def command(
    seed: int | None,
    seeds: str | None,
    nodes: int | None,
    clusters: bool,
    quorums: bool,
    scale: float,
    trace: bool,
    as_json: bool,
) -> None:
    """Simulates whole nodes with their clients and every kind of fault, on virtual time, from a seed."""
    if (seed is None) == (seeds is None):
        raise click.UsageError("Give either --seed or --seeds.")
    several = seed is None
    chosen = _parse_seeds(seeds) if seeds is not None else [seed or 0]
    kind = Kind(nodes, clusters, quorums, scale)
    started = time.monotonic()
    coverage = Coverage()
    for count, each in enumerate(chosen, 1):
        gc.collect()
        report = World(each, kind.plan(each), echo=click.echo if trace else None).run()
        if as_json:
            click.echo(json.dumps(asdict(report)))
        elif report.failure is not None or not several:
            click.echo(_clear_line() * several + summary(report, kind.options))
        elif several:
            _show_progress(count, report, time.monotonic() - started)
        coverage.add(report)
        if report.failure is not None:
            sys.exit(1)
    if kind.is_replicated and coverage.seeds >= FEWEST_SEEDS and coverage.missing:
        click.echo(f"{_clear_line()}None of {coverage.seeds} seeds had: {', '.join(coverage.missing)}")
        sys.exit(1)
    if several and not as_json:
        what = f", {coverage.range}" if kind.is_replicated else ""
        click.echo(f"{_clear_line()}{coverage.seeds} seeds hold{what}, {time.monotonic() - started:.0f} s")


class Kind(NamedTuple):
    """Which run a seed stands for."""

    nodes: int | None = None
    clusters: bool = False
    quorums: bool = False
    scale: float = 1.0

    def plan(self, seed: int) -> Plan:
        if self.quorums:
            return quorum_plan_of(seed, nodes=self.nodes, scale=self.scale)
        if self.clusters or (self.nodes or 1) > 1:
            return cluster_plan_of(seed, nodes=self.nodes, scale=self.scale)
        return plan_of(seed, scale=self.scale)

    @property
    def is_replicated(self) -> bool:
        """Whether what happens in clusters must happen in a batch of seeds."""
        return self.nodes != 1 and (self.clusters or self.nodes is not None) and not self.quorums

    @property
    def options(self) -> str:
        """The options that repeat it, besides the seed."""
        given = {
            f" --nodes {self.nodes}": self.nodes is not None,
            " --clusters": self.clusters,
            " --quorums": self.quorums,
            f" --scale {self.scale:g}": self.scale != 1.0,
        }
        return "".join(option for option, is_given in given.items() if is_given)


def summary(report: RunReport, options: str = "") -> str:
    """A run in a few lines; if a promise was broken, also what led up to it and how to repeat it."""
    counts = report.counts
    lines = [
        f"seed {report.seed}: {report.virtual_ms / 1000:.1f} s of virtual time, {report.events} events, "
        f"{report.lives} lives of the node",
        f"  faults    {sum(report.faults.values())} of {report.announced} took effect in "
        f"{report.attacked_ms / 1000:.1f} s: {_listed(report.faults)}",
        f"  requests  {counts.requests} sent, {counts.lost_requests} without an answer, "
        f"{counts.connections} connections",
        f"  records   {counts.records_sent} sent, {counts.records_acknowledged} acknowledged in "
        f"{counts.writes_acknowledged} writes, {counts.records_read} read, {counts.records_lost} lost with the power",
        f"  topics    {counts.topics_created} created, {counts.topics_deleted} deleted",
        f"  coordinators {counts.sessions} transactional sessions, {counts.transactions_committed} transactions "
        f"committed, {counts.transactions_aborted} aborted, {counts.assignments} assignments to members, "
        f"{counts.offsets_committed} offsets committed",
        f"  errors    {_listed(counts.errors)}",
        f"  happened  {_listed(report.happened)}",
        f"  checks    {counts.checks}",
        f"  digest    {report.digest}",
    ]
    again = f"run it again with: {COMMAND} --seed {report.seed}{options}"
    if report.violation is not None:
        story = [f"  {line}" for line in report.story[-STORY_LINES:]]
        return "\n".join([*lines, "", *story, "", f"BROKEN with seed {report.seed}: {report.violation}", again])
    lines.append("every promise holds")
    if report.lacks is not None:
        lines += ["", f"TOO LITTLE with seed {report.seed}: {report.lacks}", again]
    return "\n".join(lines)


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


def _show_progress(count: int, report: RunReport, seconds: float) -> None:
    if sys.stderr.isatty() or count % 100 == 0:
        end = "\r" if sys.stderr.isatty() else "\n"
        did = f"{report.counts.writes_acknowledged} writes, {sum(report.faults.values())} faults"
        click.echo(f"seed {report.seed} holds with {did}; {count} seeds in {seconds:.0f} s ", nl=False, err=True)
        click.echo(end, nl=False, err=True)


def _clear_line() -> str:
    return "\x1b[2K\r" if sys.stdout.isatty() else ""
