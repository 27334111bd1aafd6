"""`quire`: the root of the command line. It imports a command only when that command is called."""

import click

from quire import __version__
from quire.console.groups import Entry, RootGroup

EPILOG = """\b
Examples:
  quire start                               serve 127.0.0.1:9092 from ./quire-data
  quire topics create orders --partitions 6
  quire produce orders --file orders.txt
  quire consume orders --from-beginning --follow

\b
Exit codes:
  0 done    1 failed    2 wrong usage    3 no broker reachable, or no response in time
  4 not found    130 interrupted (Ctrl-C)    143 terminated (SIGTERM)
"""

COMMANDS = {
    "start": Entry("quire.cli.node.start:start", "Start a node and serve until stopped."),
    "storage": Entry("quire.cli.storage.storage:storage", "Prepare and inspect data directories."),
    "topics": Entry("quire.cli.cluster.topics:topics", "List, create, describe, alter and delete topics."),
    "partitions": Entry("quire.cli.partitions.partitions:partitions", "Show partitions, elect leaders, move replicas."),
    "configs": Entry("quire.cli.cluster.configs:configs", "Show and change settings of topics and brokers."),
    "explain": Entry("quire.cli.cluster.explain:explain", "Say what a topic promises, and what it survives now."),
    "groups": Entry("quire.cli.groups.groups:groups", "List, describe and delete groups, and reset offsets."),
    "transactions": Entry("quire.cli.transactions.transactions:transactions", "List, describe and abort transactions."),
    "produce": Entry("quire.cli.records.produce:produce", "Write lines to a topic."),
    "consume": Entry("quire.cli.records.consume:consume", "Read a topic."),
    "dump-log": Entry("quire.cli.storage.dump_log:dump_log", "Show the contents of the files of a data directory."),
    "verify": Entry("quire.cli.storage.verify:verify", "Check data directories of nodes that are not running."),
    "pipelines": Entry("quire.cli.pipelines.pipelines:pipelines", "Run data pipelines on Spark."),
    "dlq": Entry("quire.cli.pipelines.dlq:dlq", "Show dead letters, and send them back."),
    "cluster": Entry("quire.cli.cluster.cluster:cluster", "Show nodes, controller, features and the status."),
    "completion": Entry("quire.cli.completion:completion", "Print the script for completion in bash, zsh or fish."),
    "quorum": Entry("quire.cli.cluster.quorum:quorum", "Show the metadata quorum, add and remove controllers."),
    "brokers": Entry("quire.cli.cluster.brokers:brokers", "List brokers, and unregister one."),
    "disks": Entry("quire.cli.disks.disks:disks", "Show data directories, and move replicas between them."),
    "features": Entry("quire.cli.cluster.features:features", "List features, and upgrade or downgrade them."),
    "version": Entry("quire.cli.version:version", "Show the versions of Quire, Kafka's protocol and Python."),
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
