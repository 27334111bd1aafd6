"""Carries out a plan: begins the reassignments, shows how far they are, and gives the new first replicas the lead."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

from quire.cli.partitions.plan_view import duration, size
from quire.cli.partitions.progress import Watched, follow
from quire.cli.partitions.throttle import clear_throttle, set_throttle
from quire.client.admin.leader_elections import elect_leaders
from quire.client.admin.reassignments import reassign_partitions
from quire.client.offsets import TopicPartition
from quire.client.placement.model import Change
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import Failure
from quire.console.output import count, print_json
from quire.console.terminal import echo
from quire.protocol.errors import ApiError

_PER_REQUEST = 1_000
"""Partitions: a request about more could take longer than its time-out."""
_SHOWN = 5

GOES_ON = (
    "the reassignment goes on in the cluster. Watch it with `quire partitions reassign --watch`, "
    "or end it with `quire partitions reassign --cancel`"
)


def carry_out(
    client: BlockingClient,
    changes: Sequence[Change],
    brokers: Sequence[int],
    *,
    throttle: int | None,
    wait: bool,
    as_json: bool,
) -> None:
    """`brokers` are those that are up."""
    began_ms = client.cluster.clock.monotonic_ms()
    if throttle is not None:
        set_throttle(client, changes, brokers, throttle)
    with goes_on_if_interrupted():
        begin(client, {_where(each): each.replicas for each in changes})
        if wait:
            needed = {_where(each): dict.fromkeys(each.adding, each.before.size_bytes) for each in changes}
            follow(client, Watched(needed), (lambda _: None) if as_json else None)
    if not wait:
        _report(changes, None, as_json=as_json)
        return
    _elect_first(client, changes)
    if throttle is not None:
        clear_throttle(client, {each.before.topic for each in changes}, brokers)
    _report(changes, (client.cluster.clock.monotonic_ms() - began_ms) / 1000, as_json=as_json)


@contextmanager
def goes_on_if_interrupted() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        echo(f"\n{GOES_ON}.", err=True)
        raise


def begin(client: BlockingClient, wanted: Mapping[TopicPartition, Sequence[int] | None]) -> None:
    """Begins or cancels. What the controller refuses is named after everything else has begun."""
    refused: dict[TopicPartition, ApiError] = {}
    items = iter(wanted.items())
    while portion := dict(islice(items, _PER_REQUEST)):
        results = client.run(reassign_partitions(client.cluster, portion))
        refused |= {where: error for where, error in results.items() if error is not None}
    if refused:
        reasons = "; ".join(f"{where}: {error.message}" for where, error in list(refused.items())[:_SHOWN])
        more = f"; and {len(refused) - _SHOWN:,} more" if len(refused) > _SHOWN else ""
        others = len(wanted) - len(refused)
        begun = f"; the other {count(others, 'partition')} did" if others else ""
        raise Failure(f"{count(len(refused), 'partition')} did not change: {reasons}{more}{begun}.")


def _elect_first(client: BlockingClient, changes: Sequence[Change]) -> None:
    """Otherwise the leaders would move at the next check of the cluster. One that is not possible will do so."""
    moved = [_where(each) for each in changes if each.moves_leadership]
    if moved:
        client.run(elect_leaders(client.cluster, moved))


def _report(changes: Sequence[Change], seconds: float | None, *, as_json: bool) -> None:
    copied = sum(each.copied_bytes for each in changes)
    if as_json:
        print_json(
            {
                "partitions": len(changes),
                "copied_replicas": sum(len(each.adding) for each in changes),
                "copied_bytes": copied,
                "done": seconds is not None,
                "seconds": None if seconds is None else round(seconds, 3),
            }
        )
    elif seconds is None:
        echo(f"{count(len(changes), 'partition')}: {GOES_ON}.")
    else:
        echo(f"done: {count(len(changes), 'partition')} changed, {size(copied)} copied in {duration(seconds)}")


def _where(change: Change) -> TopicPartition:
    return TopicPartition(change.before.topic, change.before.partition)
