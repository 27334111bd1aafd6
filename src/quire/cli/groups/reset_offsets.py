"""`quire groups reset-offsets`: shows the new offsets of a group, and with --execute commits them."""

import time
from collections.abc import Sequence
from typing import IO

import click

from quire.cli.groups.offset_files import format_offsets, parse_offsets
from quire.cli.moments import Duration, Moment
from quire.cli.name_completion import complete_groups
from quire.cli.reports import fail_for_each
from quire.cli.scopes import Scope, ScopeType, resolve
from quire.client.admin.group_descriptions import Group
from quire.client.admin.groups import describe_groups
from quire.client.admin.offset_reset import Goal, Move, To, plan_reset
from quire.client.admin.topics import describe_topics
from quire.client.group_offsets import OffsetAndMetadata, Offsets, committed_offsets, set_offsets
from quire.client.metadata import Topic
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.console.explain import explain
from quire.console.failure import EXIT_NOT_FOUND, Failure
from quire.console.options import IntRange, cluster_options, connect, json_option
from quire.console.output import count, print_json, print_table
from quire.console.terminal import echo
from quire.protocol.errors import ApiError, ErrorCode


@click.command(
    "reset-offsets",
    epilog="""\b
Examples:
  quire groups reset-offsets readers --topic orders --to-earliest               shows the new offsets
  quire groups reset-offsets readers --topic orders --to-earliest --execute     commits them
  quire groups reset-offsets readers --topic orders:0,3 --shift-by -10
  quire groups reset-offsets readers --all-topics --to-datetime 2026-01-31T12:00:00Z
  quire groups reset-offsets readers --topic orders --by-duration PT1H30M
  quire groups reset-offsets readers --all-topics --to-current --export > offsets.csv
  quire groups reset-offsets readers --from-file offsets.csv --execute""",
)
@click.argument("name", shell_complete=complete_groups)
@click.option("-t", "--topic", "scopes", type=ScopeType(), multiple=True, help="What to reset; repeatable.")
@click.option("--all-topics", is_flag=True, help="All partitions that the group has offsets for.")
@click.option("--to-earliest", is_flag=True, help="To the first record.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option("--to-current", is_flag=True, help="To the committed offset, or to the end if there is none.")
@click.option("--to-offset", type=IntRange(min=0), metavar="N", help="To this offset.")
@click.option("--shift-by", type=int, metavar="N", help="Forward by this number; negative: back.")
@click.option("--to-datetime", type=Moment(), help="To the first record since this time: milliseconds or ISO 8601.")
@click.option("--by-duration", type=Duration(), help="To the first record of this recent period, as in PT1H30M.")
@click.option(
    "--from-file", type=click.File("r"), help="To the offsets in lines of TOPIC,PARTITION,OFFSET; - is stdin."
)
@click.option("-y", "--execute", "--yes", "execute", is_flag=True, help="Do it.")
@click.option("--dry-run", is_flag=True, help="Only show the new offsets; the default without --execute.")
@click.option("--export", is_flag=True, help="Print lines for --from-file instead of a table.")
@json_option
@cluster_options
def reset_offsets(
    name: str,
    scopes: Sequence[Scope],
    all_topics: bool,
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_datetime: int | None,
    by_duration: int | None,
    from_file: IO[str] | None,
    execute: bool,
    dry_run: bool,
    export: bool,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Change the committed offsets of a group, so that its members continue from there.

    Without --execute the command only shows the new offsets. With it, the group must have no members: stop them first.
    An offset that a partition does not have is replaced by the nearest one that it has.
    """
    goals = {
        "--to-earliest": to_earliest and Goal(To.EARLIEST),
        "--to-latest": to_latest and Goal(To.LATEST),
        "--to-current": to_current and Goal(To.CURRENT),
        "--to-offset": to_offset is not None and Goal(To.OFFSET, to_offset),
        "--shift-by": shift_by is not None and Goal(To.SHIFT, shift_by),
        "--to-datetime": to_datetime is not None and Goal(To.TIME, to_datetime),
        "--by-duration": by_duration is not None and Goal(To.TIME, time.time_ns() // 1_000_000 - by_duration),
        "--from-file": from_file is not None and Goal(To.GIVEN, offsets=parse_offsets(from_file, name)),
    }
    chosen = [goal for goal in goals.values() if goal]
    if len(chosen) != 1:
        raise click.UsageError(f"the target is missing or ambiguous; give exactly one of {', '.join(goals)}")
    if (len(scopes) > 0) + all_topics + (from_file is not None) != 1:
        raise click.UsageError("nothing to reset; give --topic, --all-topics or, without either, --from-file")
    if execute and dry_run:
        raise click.UsageError("--dry-run and --execute exclude each other")
    if export and as_json:
        raise click.UsageError("--export and --json exclude each other")
    with connect(servers, timeout_s) as client:
        group = _group(client, name)
        if execute and group is not None and group.in_use:
            members = count(len(group.members), "member")
            raise explain(ApiError(ErrorCode.NON_EMPTY_GROUP, f"group {name} has {members}"), name)
        moves = _plan(client, name, scopes, chosen[0])
        results = _commit(client, name, moves) if execute else {}
    done = [move for move in moves if results.get(move.topic_partition) is None]
    if as_json:
        print_json({"name": name, "executed": execute, "partitions": [_move_json(move) for move in done]})
    elif export:
        echo(format_offsets({move.topic_partition: move.after for move in done}), nl=False)
    else:
        print_table(("topic", "partition", "committed", "new", "lag then"), [_row(move) for move in done])
    for move in done:
        if move.after != move.wanted:
            edge = "first" if move.wanted < move.after else "end"
            echo(f"{move.topic_partition} has no offset {move.wanted}; its {edge} offset is used.", err=True)
    if not execute and not export:
        echo(_next_step(name, group), err=True)
    if execute and done:
        echo(f"Done: {name} continues from the new offset in {count(len(done), 'partition')}.", err=True)
    fail_for_each({str(partition): failed for partition, failed in results.items() if failed is not None})


def _next_step(name: str, group: Group | None) -> str:
    if group is None:
        return f"Nothing was changed, and there is no group {name} yet; --execute creates it."
    if group.in_use:
        return f"Nothing was changed; stop {count(len(group.members), 'member')} of {name} first, then add --execute."
    return "Nothing was changed; add --execute to do it."


def _group(client: BlockingClient, name: str) -> Group | None:
    found = client.run(describe_groups(client.cluster, [name]))[name]
    if not isinstance(found, ApiError):
        return found
    if found.code != ErrorCode.GROUP_ID_NOT_FOUND:
        raise found
    return None


def _plan(client: BlockingClient, name: str, scopes: Sequence[Scope], goal: Goal) -> list[Move]:
    committed = client.run(committed_offsets(client.cluster, [name]))[name]
    if isinstance(committed, ApiError):
        raise committed
    if goal.to is To.GIVEN:
        scopes = [Scope(topic_partition.topic, (topic_partition.partition,)) for topic_partition in goal.offsets]
    elif not scopes:
        scopes = _existing(client, committed)
        if not scopes:
            raise Failure(
                f"group {name} has no offsets for existing topics; choose what to reset with --topic.", EXIT_NOT_FOUND
            )
    return client.run(plan_reset(client.cluster, committed, resolve(client, scopes), goal))


def _existing(client: BlockingClient, committed: Offsets) -> list[Scope]:
    """The partitions with committed offsets that still exist; offsets outlive their topics for a while."""
    names = sorted({topic_partition.topic for topic_partition in committed})
    topics = client.run(describe_topics(client.cluster, names))
    scopes = []
    for topic_partition in sorted(committed):
        topic = topics[topic_partition.topic]
        if isinstance(topic, Topic) and topic_partition.partition in topic.partitions:
            scopes.append(Scope(topic_partition.topic, (topic_partition.partition,)))
        else:
            echo(f"{topic_partition} no longer exists and is skipped.", err=True)
    return scopes


def _commit(client: BlockingClient, name: str, moves: Sequence[Move]) -> dict[TopicPartition, ApiError | None]:
    return client.run(
        set_offsets(client.cluster, name, {move.topic_partition: OffsetAndMetadata(move.after) for move in moves})
    )


def _row(move: Move) -> tuple[str | int | None, ...]:
    return move.topic_partition.topic, move.topic_partition.partition, move.before, move.after, move.lag


def _move_json(move: Move) -> dict[str, object]:
    return {
        "topic": move.topic_partition.topic,
        "partition": move.topic_partition.partition,
        "committed": move.before,
        "new": move.after,
        "lag": move.lag,
    }
