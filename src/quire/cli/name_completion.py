"""Completes the names of topics and groups in a shell, for the arguments of commands.

The names come from the cluster. If it does not answer within a second, there is nothing to complete: a message would
end up in the user's command line.
"""

import os
from collections.abc import Callable

import click

from quire.client.admin.groups import list_groups
from quire.client.admin.topics import describe_topics
from quire.client.errors import ClientError
from quire.client.metadata import Topic
from quire.client.servers import AddressError
from quire.client.shell_blocking import BlockingClient
from quire.console.options import DEFAULT_SERVER, connect
from quire.protocol.errors import ApiError

PATIENCE_S = 1.0

Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def _topics(client: BlockingClient) -> list[str]:
    found = client.run(describe_topics(client.cluster), PATIENCE_S * 1000)
    return [name for name, topic in found.items() if isinstance(topic, Topic) and not topic.internal]


def _groups(client: BlockingClient) -> list[str]:
    found, _ = client.run(list_groups(client.cluster), PATIENCE_S * 1000)
    return [group.group_id for group in found]


def _completer(names: Callable[[BlockingClient], list[str]]) -> Completer:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        servers = ctx.params.get("servers") or os.environ.get("QUIRE_BOOTSTRAP") or DEFAULT_SERVER
        try:
            with connect(str(servers), PATIENCE_S) as client:
                return [name for name in names(client) if name.startswith(incomplete)]
        except (ApiError, ClientError, AddressError, OSError):
            return []

    return complete


complete_topics = _completer(_topics)
complete_groups = _completer(_groups)
