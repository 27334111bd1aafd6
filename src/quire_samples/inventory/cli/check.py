"""`quire-samples inventory check`: reads the lake, the view and the log, in this order, and reports differences."""

import json
import time
import urllib.error
import urllib.request
from http.client import HTTPException, InvalidURL

import click

from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import EXIT_UNREACHABLE, EXIT_USAGE, Failure
from quire.console.options import FloatRange, cluster_options, connect, json_option
from quire.console.output import count, print_json
from quire.console.terminal import echo
from quire.protocol.records import Record
from quire_samples.inventory.check import Archived, History, Report, compare
from quire_samples.inventory.lake import read_lake
from quire_samples.inventory.reading import read, readable, whole
from quire_samples.inventory.stock import Level
from quire_samples.inventory.topics import Topics, partitions_of
from quire_samples.inventory.view import Follower, View

SHOWN = 20
LOOK_AGAIN_S = 1.0


@click.command(
    epilog="""\b
Examples:
  quire-samples inventory check                                a view that is built now, and the history
  quire-samples inventory check --view http://127.0.0.1:8090   a running view
  quire-samples inventory check --lake ./quire-pipelines/lake/inventory/events --wait 60

\b
Exit code 0 if everything agrees, 1 if something differs."""
)
@click.option("--view", "url", metavar="URL", help="A running `quire-samples inventory view`.  [default: build one]")
@click.option("--lake", metavar="PATH", help="The Delta table of the archived events.")
@click.option(
    "--wait", "wait_s", type=FloatRange(min=0), metavar="SECONDS", help="How long the lake may take to catch up."
)
@click.option("--events", default=Topics().events, show_default=True, metavar="TOPIC", help="Changes of the stock.")
@json_option
@cluster_options
def check(
    url: str | None,
    lake: str | None,
    wait_s: float | None,
    events: str,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Compare the view, the history and the lake, item by item: all must result in the same stock."""
    deadline_s = time.monotonic() + (wait_s or 0)
    with connect(servers, timeout_s) as client:
        while True:
            last = time.monotonic() >= deadline_s
            archived = None if lake is None else read_lake(lake, may_be_missing=not last)
            report, history = _check(client, events, url, archived, timeout_s)
            if not report.behind or last:
                break
            time.sleep(LOOK_AGAIN_S)
    late = bool(report.behind and wait_s is not None)
    if as_json:
        print_json(_as_json(report, history))
    else:
        _print(report, history)
    if not report.agrees:
        raise Failure(f"{count(len(report.findings), 'difference')} found.")
    if late:
        raise Failure(f"the lake is still {count(report.behind or 0, 'event')} behind after {wait_s:g} s.")


def _check(
    client: BlockingClient, topic: str, url: str | None, archived: dict[str, Archived] | None, timeout_s: float
) -> tuple[Report, History]:
    """Reads the view, then the log. The lake was read before, so the log has every event that the others have."""
    levels, offsets = _rebuilt(client, topic) if url is None else _asked(url, topic, timeout_s)
    history_at_view, history = History(), History(_last(archived))

    def take(topic_partition: TopicPartition, record: Record) -> None:
        event = readable(topic_partition, record)
        history.add(event)
        if record.offset < offsets.get(topic_partition.partition, 0):
            history_at_view.add(event)

    topic_partitions = client.run(partitions_of(client.cluster, topic))
    client.run(read(client.cluster, client.run(whole(client.cluster, topic_partitions)), take))
    return compare(levels, history_at_view, history, archived), history


def _last(archived: dict[str, Archived] | None) -> dict[str, int]:
    return {item: found.last_sequence for item, found in (archived or {}).items()}


def _rebuilt(client: BlockingClient, topic: str) -> tuple[dict[str, Level], dict[int, int]]:
    view = View(topic)
    follower = Follower(client.cluster, view)
    client.run(follower.rebuild())
    follower.stop()
    return {item: Level(event.level, event.sequence) for item, event in view.items.items()}, view.offsets


def _asked(url: str, topic: str, timeout_s: float) -> tuple[dict[str, Level], dict[int, int]]:
    address = f"{url if '://' in url else f'http://{url}'}".rstrip("/") + "/items"
    try:
        with urllib.request.urlopen(address, timeout=timeout_s) as response:
            content = json.load(response)
        levels = {entry["item"]: Level(entry["level"], entry["sequence"]) for entry in content["items"]}
        offsets = {int(partition): offset for partition, offset in content["offsets"].items()}
        named = content["topic"]
    except InvalidURL as error:
        raise Failure(f"{url} is not the address of a view ({error}).", EXIT_USAGE) from error
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "reason", None) or error
        raise Failure(f"no inventory view answers at {address} ({reason}); check --view.", EXIT_UNREACHABLE) from error
    if named != topic:
        raise Failure(f"the view at {url} is of topic {named}, not of {topic}; give the topic with --events.")
    return levels, offsets


def _as_json(report: Report, history: History) -> dict[str, object]:
    return {
        "agrees": report.agrees,
        "items": report.items,
        "events_in_log": history.events,
        "events_compacted": history.compacted,
        "events_not_in_lake": report.behind,
        "differences": [{"item": finding.item, "what": finding.what} for finding in report.findings],
    }


def _print(report: Report, history: History) -> None:
    compacted = f", {history.compacted:,} more compacted away" if history.compacted else ""
    echo(f"{count(report.items, 'item')}, {count(history.events, 'event')} in the log{compacted}")
    if report.behind:
        echo(f"the lake is {count(report.behind, 'event')} behind")
    elif report.behind == 0 and report.agrees:
        echo("the lake has them all")
    for finding in report.findings[:SHOWN]:
        echo(f"  {finding.item}: {finding.what}")
    if len(report.findings) > SHOWN:
        echo(f"  ... and {len(report.findings) - SHOWN:,} more")
    if report.agrees:
        sources = "view and history" if report.behind is None else "view, history and lake"
        echo(f"{sources} agree on every item")
