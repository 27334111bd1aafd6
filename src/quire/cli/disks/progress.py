"""Follows moves until they are done, with a progress bar at a terminal."""

import sys
from collections.abc import Sequence

from quire.cli.disks.plan import Plan, size_text
from quire.client.admin.cluster import LogDir, describe_log_dirs
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import Failure
from quire.console.output import count
from quire.console.terminal import rewrite_line
from quire.steps import sleep

LOOK_EVERY_MS = 500.0
BAR = 30


class Progress:
    """How far a plan is."""

    __slots__ = ("copied_bytes", "left", "lost", "moved")

    def __init__(self, plan: Plan, directories: Sequence[LogDir]) -> None:
        there = {each.path: each for each in directories}
        target = there[plan.target]
        done = {TopicPartition(each.topic, each.partition) for each in target.replicas if not each.is_future}
        futures = {
            TopicPartition(each.topic, each.partition): each.size_bytes for each in target.replicas if each.is_future
        }
        self.moved = 0
        self.copied_bytes = 0
        self.left: list[TopicPartition] = []
        self.lost: list[TopicPartition] = []
        """Neither there nor on the way: somebody has cancelled the move, or the topic was deleted."""
        for each in plan.replicas:
            name = TopicPartition(each.topic, each.partition)
            if name in done:
                self.moved += 1
                self.copied_bytes += each.size_bytes
            elif name in futures:
                self.left.append(name)
                self.copied_bytes += min(futures[name], each.size_bytes)
            else:
                self.lost.append(name)

    def line(self, plan: Plan) -> str:
        """As `[#####-----]  50 %  1 of 2 replicas, 1.0 GiB of 2.0 GiB`."""
        part = self.moved / len(plan.replicas) if not plan.size_bytes else self.copied_bytes / plan.size_bytes
        full = int(part * BAR)
        sizes = f"{size_text(self.copied_bytes)} of {size_text(plan.size_bytes)}"
        bar = f"[{'#' * full}{'-' * (BAR - full)}]"
        return f"{bar} {part:4.0%}  {self.moved} of {count(len(plan.replicas), 'replica')}, {sizes}"


def follow(client: BlockingClient, plan: Plan) -> None:
    """Returns when everything has moved; a Failure if that will not happen."""
    is_live = sys.stderr.isatty()
    try:
        while True:
            directories = client.run(describe_log_dirs(client.cluster, plan.broker))
            failed = next((each for each in directories if each.path == plan.target and each.error), None)
            if failed is not None:
                raise Failure(f"{plan.target} on broker {plan.broker} has failed; the replicas stay where they are.")
            progress = Progress(plan, directories)
            if is_live:
                rewrite_line(progress.line(plan).ljust(79), err=True)
            if not progress.left:
                break
            client.run(sleep(client.cluster.clock, LOOK_EVERY_MS))
    finally:
        if is_live:
            rewrite_line("", err=True, nl=True)
    if progress.lost:
        names = ", ".join(f"{name.topic}-{name.partition}" for name in progress.lost[:5])
        raise Failure(
            f"{count(len(progress.lost), 'replica')} will not move to {plan.target}, {names} first: the move was "
            "cancelled, or the topic was deleted."
        )
