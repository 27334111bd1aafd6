"""`quire partitions status`: a table of partitions, all or those with something to look at."""

from collections.abc import Callable, Sequence

import click

from quire.cli.missing_topics import topic_failures
from quire.cli.name_completion import complete_topics
from quire.client.admin.partition_states import PartitionState, describe_partitions
from quire.client.shell_blocking import BlockingClient
from quire.console.live_screen import watch
from quire.console.options import cluster_options, connect, json_option, watch_options
from quire.console.output import count, format_table, numbers, print_json, title_of
from quire.console.terminal import echo, to_json
from quire.protocol.errors import ApiError

TITLES = ("topic", "partition", "leader", "replicas", "isr", "state")
IS_TITLE = title_of(TITLES)

KINDS: dict[str, tuple[str, Callable[[PartitionState], bool]]] = {
    "no_leader": ("without a leader", lambda each: each.leader is None),
    "under_min_isr": ("with too few replicas in sync for acks=all", lambda each: each.is_under_min_isr),
    "out_of_sync": ("with replicas out of sync", lambda each: bool(each.out_of_sync)),
    "offline": ("with replicas that are offline", lambda each: bool(each.offline)),
    "not_preferred": (
        "led by another replica than the first",
        lambda each: each.leader is not None and not each.is_led_by_first,
    ),
    "reassigning": ("that are being reassigned", lambda each: each.reassignment is not None),
}


@click.command(
    epilog="""\b
Examples:
  quire partitions status
  quire partitions status --topic orders --watch
  quire partitions status --no-leader --under-min-isr    those that need help
  quire partitions status --json"""
)
@click.option("--topic", "topics", multiple=True, metavar="NAME", shell_complete=complete_topics, help="Only this.")
@click.option("--no-leader", is_flag=True, help="Only those without a leader.")
@click.option("--under-min-isr", is_flag=True, help="Only those that refuse acks=all.")
@click.option("--out-of-sync", is_flag=True, help="Only those with replicas out of sync.")
@click.option("--offline", is_flag=True, help="Only those with replicas that are offline.")
@click.option("--not-preferred", is_flag=True, help="Only those whose first replica does not lead.")
@click.option("--reassigning", is_flag=True, help="Only those that are being reassigned.")
@watch_options
@json_option
@cluster_options
def status(
    topics: Sequence[str],
    live: bool,
    interval_s: float,
    as_json: bool,
    servers: str,
    timeout_s: float,
    **filters: bool,
) -> None:
    """Show the leader, the replicas and the state of partitions.

    Several filters show partitions that match any of them. The last lines count all partitions, also those that are
    not shown.
    """
    wanted = [kind for kind in KINDS if filters[kind]]

    def look() -> str:
        found = find_states(client, topics)
        return to_json(_json(found, wanted)) if as_json else _view(found, wanted)

    with connect(servers, timeout_s) as client:
        if live:
            watch(client, look, interval_s, IS_TITLE)
        found = find_states(client, topics)
    if as_json:
        print_json(_json(found, wanted))
    else:
        echo(_view(found, wanted), headings=IS_TITLE)


def find_states(client: BlockingClient, topics: Sequence[str]) -> list[PartitionState]:
    """Those of all topics if none are named."""
    try:
        return client.run(describe_partitions(client.cluster, list(topics) or None))
    except ApiError as error:
        missing = [name for name in topics if name not in client.cluster.metadata.topics]
        if not missing:
            raise
        raise topic_failures(client, {missing[0]: error}, creating_helps=False)[0] from error


def _chosen(found: Sequence[PartitionState], wanted: Sequence[str]) -> list[PartitionState]:
    return [each for each in found if not wanted or any(KINDS[kind][1](each) for kind in wanted)]


def _view(found: Sequence[PartitionState], wanted: Sequence[str]) -> str:
    shown = _chosen(found, wanted)
    rows = [
        (each.topic, each.partition, each.leader, numbers(each.replicas), numbers(each.isr), describe_state(each))
        for each in shown
    ]
    lines = [format_table(TITLES, rows), ""] if rows else []
    return "\n".join([*lines, *_counts(found)])


def _counts(found: Sequence[PartitionState]) -> list[str]:
    counts = {text: sum(map(matches, found)) for text, matches in KINDS.values()}
    lines = [f"  {number:,} {text}" for text, number in counts.items() if number]
    well = ", all led by their first replica and in sync" if found and not lines else ""
    return [f"{count(len(found), 'partition')}{well}", *lines]


def describe_state(each: PartitionState) -> str:
    words: list[str] = []
    if each.leader is None:
        words.append("no leader")
    elif not each.is_led_by_first:
        words.append("not preferred")
    if each.is_under_min_isr:
        words.append(f"under min.insync.replicas={each.min_insync_replicas}")
    if each.out_of_sync:
        words.append(f"out of sync: {numbers(each.out_of_sync)}")
    if each.offline:
        words.append(f"offline: {numbers(each.offline)}")
    if each.reassignment is not None:
        adding, removing = each.reassignment.adding, each.reassignment.removing
        changes = [f"+{broker}" for broker in adding] + [f"-{broker}" for broker in removing]
        words.append(f"reassigning {' '.join(changes)}".rstrip())
    return "; ".join(words) or "ok"


def _json(found: Sequence[PartitionState], wanted: Sequence[str]) -> dict[str, object]:
    return {
        "partitions": [_partition_json(each) for each in _chosen(found, wanted)],
        "total": len(found),
        **{kind: sum(map(matches, found)) for kind, (_, matches) in KINDS.items()},
    }


def _partition_json(each: PartitionState) -> dict[str, object]:
    moving = each.reassignment
    return {
        "topic": each.topic,
        "partition": each.partition,
        "leader": each.leader,
        "preferred": each.is_led_by_first,
        "replicas": list(each.replicas),
        "isr": list(each.isr),
        "out_of_sync": list(each.out_of_sync),
        "offline": list(each.offline),
        "min_insync_replicas": each.min_insync_replicas,
        "under_min_isr": each.is_under_min_isr,
        "adding": [] if moving is None else list(moving.adding),
        "removing": [] if moving is None else list(moving.removing),
    }
