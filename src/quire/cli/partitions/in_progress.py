"""Reassignments that are in progress: listed, watched until they are done, or cancelled."""

import sys
from collections.abc import Sequence

from quire.cli.partitions.carry_out import begin, goes_on_if_interrupted
from quire.cli.partitions.progress import Moving, Watched, find_moving, follow, needed_by, sizes_of
from quire.cli.partitions.throttle import clear_throttle
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import Failure
from quire.console.output import count, numbers, print_json, print_table
from quire.console.terminal import confirm, echo, to_json

_NONE = "no reassignment is in progress"


def list_moving(client: BlockingClient, topics: Sequence[str], *, as_json: bool) -> None:
    moving = _of_topics(client, topics)
    sizes = sizes_of(client, moving)
    parts = {
        where: Watched(needed_by({where: each}, sizes)).progress(moving, sizes).part for where, each in moving.items()
    }
    if as_json:
        print_json(
            [
                {
                    "topic": where.topic,
                    "partition": where.partition,
                    "replicas": list(each.replicas),
                    "adding": list(each.adding),
                    "removing": list(each.removing),
                    "copied": round(parts[where], 4),
                }
                for where, each in moving.items()
            ]
        )
    elif moving:
        rows = [
            (
                str(where),
                numbers(each.replicas),
                numbers(each.adding),
                numbers(each.removing),
                f"{parts[where]:.0%}",
            )
            for where, each in moving.items()
        ]
        print_table(("partition", "replicas", "adding", "removing", "copied"), rows)
    else:
        echo(_NONE)


def watch_moving(client: BlockingClient, topics: Sequence[str], *, as_json: bool) -> None:
    """At the end the throttle is removed: the command that set it has ended earlier."""
    moving = _of_topics(client, topics)
    if moving:
        with goes_on_if_interrupted():
            watched = Watched(needed_by(moving, sizes_of(client, moving)))
            follow(client, watched, (lambda text: echo(to_json({"progress": text}))) if as_json else None)
        _clear(client, moving)
    if as_json:
        print_json({"partitions": len(moving), "done": True})
    else:
        echo(f"done: {count(len(moving), 'partition')} changed" if moving else _NONE)


def cancel(client: BlockingClient, topics: Sequence[str], *, yes: bool, as_json: bool) -> None:
    moving = _of_topics(client, topics)
    if not moving:
        raise Failure(f"{_NONE}: what is done stays done. To move replicas back, reassign them again.")
    if not yes and sys.stdin.isatty():
        confirm(f"Cancel the reassignment of {count(len(moving), 'partition')}?")
    begin(client, dict.fromkeys(moving))
    _clear(client, moving)
    if as_json:
        print_json([{"topic": where.topic, "partition": where.partition} for where in moving])
    else:
        echo(f"{count(len(moving), 'partition')}: cancelled")


def _of_topics(client: BlockingClient, topics: Sequence[str]) -> Moving:
    return dict(sorted((where, each) for where, each in find_moving(client).items() if _is_of(where, topics)))


def _is_of(where: TopicPartition, topics: Sequence[str]) -> bool:
    return not topics or where.topic in topics


def _clear(client: BlockingClient, moving: Moving) -> None:
    """Not while others move: the brokers' rates are theirs too."""
    if not find_moving(client):
        clear_throttle(client, {where.topic for where in moving}, list(client.cluster.metadata.brokers))
