"""`quire`: the root of the command line. Nothing is imported here that a command does not need itself."""

import click

from quire import __version__
from quire.cli.lazy import Entry, RootGroup

EPILOG = """\b
Examples:
  quire start                               serve 127.0.0.1:9092 from ./quire-data
  quire topics create orders --partitions 6
  quire produce orders --file orders.txt
  quire consume orders --from-beginning --follow

\b
Exit codes:
  0 done    1 failed    2 wrong usage    3 no broker reachable, or no answer in time
  4 what was named does not exist    130 interrupted
"""

COMMANDS = {
    "start": Entry("quire.cli.start:start", "Start a node and serve until stopped."),
    "storage": Entry("quire.cli.storage:storage", "Prepare and inspect data directories."),
    "topics": Entry("quire.cli.topics:topics", "List, create, describe, alter and delete topics."),
    "configs": Entry("quire.cli.configs:configs", "Show and change settings of topics and brokers."),
    "groups": Entry("quire.cli.groups:groups", "List, describe and delete groups, reset their offsets."),
    "transactions": Entry("quire.cli.transactions:transactions", "List, describe and abort transactions."),
    "produce": Entry("quire.cli.produce:produce", "Write lines to a topic."),
    "consume": Entry("quire.cli.consume:consume", "Read a topic."),
    "dump-log": Entry("quire.cli.dump_log:dump_log", "Show what is in the files of a data directory."),
    "verify": Entry("quire.cli.verify:verify", "Check data directories of nodes that are not running."),
    "pipelines": Entry("quire.cli.pipelines:pipelines", "Run data pipelines on Spark."),
    "dlq": Entry("quire.cli.dlq:dlq", "Look at dead letters and send them back."),
    "demo": Entry("quire.cli.demo:demo", "Send made-up events, to try pipelines on."),
    "inventory": Entry("quire.cli.inventory:inventory", "Run an inventory that can be audited, and check it."),
    "view": Entry("quire.cli.view:view", "Serve what topics add up to, over HTTP."),
    "cluster": Entry("quire.cli.cluster:cluster", "Show nodes, controller, features and quorum."),
}


@click.group(
    cls=RootGroup,
    entries=COMMANDS,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="quire", message="%(prog)s %(version)s")
def quire() -> None:
    """A commit log that speaks Kafka's protocol: run a node, or work with any Kafka-compatible cluster."""


def main() -> None:
    quire(prog_name="quire")


if __name__ == "__main__":
    main()
