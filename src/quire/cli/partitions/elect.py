"""`quire partitions elect`: gives leaderships back to the first replicas, or elects whatever is left."""

import sys
from collections.abc import Mapping, Sequence

import click

from quire.cli.name_completion import complete_topics
from quire.cli.partitions.status import find_states
from quire.client.admin.leader_elections import elect_leaders
from quire.client.admin.partition_states import PartitionState
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import EXIT_FAILED, EXIT_NOT_FOUND, EXIT_USAGE, Failure
from quire.console.options import IntRange, cluster_options, connect, json_option
from quire.console.output import count, print_json
from quire.console.terminal import confirm, echo, echo_failure
from quire.protocol.errors import ApiError, ErrorCode

_SHOWN = 20


@click.command(
    epilog="""\b
Examples:
  quire partitions elect --all                           each first replica leads again, if it is in sync
  quire partitions elect --topic orders
  quire partitions elect --topic orders --partition 3 --unclean --yes"""
)
@click.option("--topic", metavar="NAME", shell_complete=complete_topics, help="The partitions of this topic.")
@click.option("--partition", "indexes", type=IntRange(min=0), multiple=True, help="Only this one; repeatable.")
@click.option("--all", "everything", is_flag=True, help="All partitions of the cluster.")
@click.option("--unclean", is_flag=True, help="Elect any replica for partitions without a leader. May lose records.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@cluster_options
def elect(
    topic: str | None,
    indexes: Sequence[int],
    everything: bool,
    unclean: bool,
    yes: bool,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Give leaderships back to the first replicas, at once.

    By itself the cluster does that every five minutes. No record is lost: only replicas that are in sync are elected.

    With --unclean, partitions without a leader get one from the replicas that are up, although these may lack records
    that were acknowledged. The missing records are then lost for good, also if the other replicas return.
    """
    if everything == (topic is not None):
        raise click.UsageError("give --topic NAME or --all")
    if indexes and topic is None:
        raise click.UsageError("--partition needs --topic")
    with connect(servers, timeout_s) as client:
        named = _named(client, topic, indexes)
        wanted = [each for each in named if (each.leader is None if unclean else not each.is_led_by_first)]
        if unclean and wanted:
            _ask(wanted, yes)
        where = [TopicPartition(each.topic, each.partition) for each in wanted]
        results = client.run(elect_leaders(client.cluster, where, unclean=unclean)) if where else {}
    _report(results, len(named), unclean=unclean, as_json=as_json)


def _named(client: BlockingClient, topic: str | None, indexes: Sequence[int]) -> list[PartitionState]:
    states = find_states(client, [] if topic is None else [topic])
    missing = sorted(set(indexes) - {each.partition for each in states})
    if missing:
        raise Failure(
            f"topic {topic} has no partition {missing[0]}; it has {count(len(states), 'partition')}.", EXIT_NOT_FOUND
        )
    return [each for each in states if not indexes or each.partition in indexes]


def _ask(wanted: Sequence[PartitionState], yes: bool) -> None:
    """Nothing may be lost because a script forgot that it cannot be asked."""
    names = ", ".join(each.name for each in wanted[:_SHOWN])
    more = f" and {len(wanted) - _SHOWN:,} more" if len(wanted) > _SHOWN else ""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure("an unclean election may lose acknowledged records: add --yes to allow that.", EXIT_USAGE)
    confirm(f"Elect leaders that may lack acknowledged records, for {names}{more}?")


def _report(results: Mapping[TopicPartition, ApiError | None], named: int, *, unclean: bool, as_json: bool) -> None:
    refused = {
        where: error
        for where, error in results.items()
        if error is not None and error.code != ErrorCode.ELECTION_NOT_NEEDED
    }
    elected = [where for where, error in results.items() if error is None]
    if as_json:
        print_json(
            {
                "elected": [{"topic": where.topic, "partition": where.partition} for where in elected],
                "refused": [
                    {
                        "topic": where.topic,
                        "partition": where.partition,
                        "error": error.code.name,
                        "message": error.message,
                    }
                    for where, error in refused.items()
                ],
                "not_needed": named - len(elected) - len(refused),
            }
        )
    else:
        _tell(elected, 0 if refused else named - len(elected), unclean=unclean)
        _tell_refused(refused)
    if refused:
        raise click.exceptions.Exit(EXIT_FAILED)


def _tell(elected: Sequence[TopicPartition], others: int, *, unclean: bool) -> None:
    for where in elected[:_SHOWN]:
        echo(f"{where.topic}-{where.partition}: {'elected' if unclean else 'its first replica leads'}")
    if len(elected) > _SHOWN:
        echo(f"and {len(elected) - _SHOWN:,} more")
    if others and not elected:
        has = "has" if others == 1 else "have"
        echo(f"nothing to do: {count(others, 'partition')} {has} {'a leader' if unclean else 'the preferred leader'}")


def _tell_refused(refused: Mapping[TopicPartition, ApiError]) -> None:
    for where, error in list(refused.items())[:_SHOWN]:
        echo_failure("quire", f"{where.topic}-{where.partition}: {error.message}")
    if len(refused) > _SHOWN:
        echo_failure("quire", f"and {len(refused) - _SHOWN:,} more")
