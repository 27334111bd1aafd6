"""`quire transactions`: lists and describes transactions, and aborts them through their coordinator."""

import re
import sys
from collections.abc import Sequence

import click

from quire.cli.reports import fail_for_each
from quire.cli.scopes import by_topic
from quire.cli.transactions.open_transactions import abort, describe_producers, find_hanging
from quire.client.admin import transactions as admin
from quire.client.admin.transactions import Transaction
from quire.console.groups import HelpfulGroup
from quire.console.options import FloatRange, Pattern, cluster_options, connect, json_option
from quire.console.output import format_table, numbers, print_json, print_table, title_of
from quire.console.printable import printable
from quire.console.terminal import confirm, echo
from quire.coordinators.transaction.transaction_state import STATES_BY_NAME
from quire.protocol.errors import ApiError

STATES = tuple(sorted(STATES_BY_NAME))

PARTITION_TITLES = ("topic", "partitions")
is_title = title_of(PARTITION_TITLES)


@click.group(
    cls=HelpfulGroup,
    epilog="""\b
Examples:
  quire transactions list
  quire transactions describe copier
  quire transactions find-hanging""",
)
def transactions() -> None:
    """List and describe transactions, find hanging ones, and abort them."""


transactions.add_command(abort)
transactions.add_command(describe_producers)
transactions.add_command(find_hanging)


@transactions.command(
    "list",
    epilog="""\b
Examples:
  quire transactions list
  quire transactions list --state ongoing --longer-than 60
  quire transactions list --pattern 'copier-.*' --json""",
)
@click.option("--state", "states", type=click.Choice(STATES, case_sensitive=False), multiple=True, help="Only these.")
@click.option("--producer-id", "producer_ids", type=int, multiple=True, metavar="ID", help="Only these producers.")
@click.option("--longer-than", "longer_than_s", type=FloatRange(min=0), metavar="SECONDS", help="Open so long.")
@click.option("--pattern", type=Pattern(), help="Only transactional ids that match as a whole.")
@json_option
@cluster_options
def list_transactions(
    states: Sequence[str],
    producer_ids: Sequence[int],
    longer_than_s: float | None,
    pattern: re.Pattern[str] | None,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """List transactional ids and their states."""
    with connect(servers, timeout_s) as client:
        found, failure = client.run(
            admin.list_transactions(
                client.cluster,
                states=states,
                producer_ids=producer_ids,
                longer_than_ms=-1 if longer_than_s is None else int(longer_than_s * 1000),
            )
        )
    if pattern is not None:  # matched here: brokers may refuse patterns, which are a risk for them
        found = [listed for listed in found if pattern.fullmatch(listed.transactional_id)]
    if as_json:
        print_json(
            [
                {
                    "name": listed.transactional_id,
                    "state": listed.state,
                    "producer_id": listed.producer_id,
                    "coordinator": listed.coordinator,
                }
                for listed in found
            ]
        )
    elif found:
        rows = [(listed.transactional_id, listed.state, listed.producer_id, listed.coordinator) for listed in found]
        print_table(("name", "state", "producer id", "coordinator"), rows)
    elif failure is None:
        narrowed = states or producer_ids or longer_than_s is not None or pattern is not None
        echo("No transaction matches." if narrowed else "There are no transactional ids yet.", err=True)
    if failure is not None:
        raise failure


@transactions.command(
    epilog="\b\nExamples:\n  quire transactions describe copier\n  quire transactions describe copier --json"
)
@click.argument("names", metavar="TRANSACTIONAL_ID...", nargs=-1, required=True)
@json_option
@cluster_options
def describe(names: Sequence[str], as_json: bool, servers: str, timeout_s: float) -> None:
    """Show state, producer, time-out, age and partitions of a transaction."""
    with connect(servers, timeout_s) as client:
        found = client.run(admin.describe_transactions(client.cluster, names))
        now_ms = client.loop.now_ms()
    known = [transaction for transaction in found.values() if isinstance(transaction, Transaction)]
    if as_json:
        print_json([_transaction_json(transaction, now_ms) for transaction in known])
    else:
        echo(
            "\n\n".join(_transaction_text(transaction, now_ms) for transaction in known),
            nl=bool(known),
            headings=is_title,
        )
    fail_for_each({name: failed for name, failed in found.items() if isinstance(failed, ApiError)})


@transactions.command(epilog="\b\nExample:\n  quire transactions force-terminate copier --yes")
@click.argument("name", metavar="TRANSACTIONAL_ID")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@cluster_options
def force_terminate(name: str, yes: bool, as_json: bool, servers: str, timeout_s: float) -> None:
    """Abort the open transaction of a transactional id, and fence its producer, which must then restart.

    Asks for confirmation at a terminal.
    """
    with connect(servers, timeout_s) as client:
        found = client.run(admin.describe_transactions(client.cluster, [name]))[name]
        if isinstance(found, ApiError):
            raise found
        if not yes and sys.stdin.isatty():
            confirm(f"Fence the producer {name} ({found.state}), and abort its open transaction?")
        client.run(admin.terminate_transaction(client.cluster, name))
    if as_json:
        print_json({"name": name, "terminated": True, "was": found.state})
    else:
        aborted = "its transaction is aborted and " if found.under_way else ""
        echo(f"{name}: {aborted}its producer fenced")


def _transaction_text(transaction: Transaction, now_ms: int) -> str:
    age_s = _age_s(transaction, now_ms)
    head = (
        f"transactional id {printable(transaction.transactional_id)}  {transaction.state}"
        f"{'' if age_s is None else f' for {age_s:,.0f} s'}  "
        f"producer {transaction.producer_id} epoch {transaction.producer_epoch}  "
        f"timeout {transaction.timeout_ms / 1000:g} s  coordinator {transaction.coordinator}"
    )
    if not transaction.partitions:
        return head
    rows = [(topic, numbers(indexes)) for topic, indexes in by_topic(transaction.partitions).items()]
    return f"{head}\n{format_table(PARTITION_TITLES, rows)}"


def _transaction_json(transaction: Transaction, now_ms: int) -> dict[str, object]:
    return {
        "name": transaction.transactional_id,
        "state": transaction.state,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "timeout_ms": transaction.timeout_ms,
        "started_ms": transaction.started_ms,
        "age_s": _age_s(transaction, now_ms),
        "partitions": by_topic(transaction.partitions),
        "coordinator": transaction.coordinator,
    }


def _age_s(transaction: Transaction, now_ms: int) -> float | None:
    """How long the transaction has been open; None if it is not open."""
    if transaction.started_ms is None or not transaction.under_way:
        return None
    return max(0, now_ms - transaction.started_ms) / 1000
