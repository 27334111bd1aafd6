"""Changing settings, for `configs alter` and `topics alter`: names that exist, and only what really changed is told.

Brokers accept to remove a setting that nobody knows, and to set what is set already. Neither helps who made a mistake.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from quire.cli.lazy import EXIT_NOT_FOUND, Failure
from quire.client.admin import configs as admin
from quire.client.admin.configs import ConfigChange, ConfigEntry, ConfigSource, Operation, Resource, ResourceType
from quire.client.shell_blocking import BlockingClient

_BROKERS = Resource(ResourceType.BROKER, "")
_SINGLE_LISTENER = "listener.name."  # Kafka has settings below it that no description lists


def change_settings(
    client: BlockingClient, resource: Resource, changes: Sequence[ConfigChange], *, validate_only: bool = False
) -> list[str]:
    """Makes the changes and returns the names of the settings that are different now."""
    removed = [change.name for change in changes if change.operation == Operation.DELETE]
    if removed:
        check_names(client, resource, removed)
    before = client.run(admin.describe_configs(client.cluster, resource, {change.name for change in changes}))
    own = {entry.name: entry for entry in before if entry.source == _own_source(resource)}
    client.run(admin.alter_configs(client.cluster, resource, changes, validate_only=validate_only))
    return list(dict.fromkeys(change.name for change in changes if _differs(change, own.get(change.name))))


def check_names(client: BlockingClient, resource: Resource, names: Iterable[str]) -> None:
    """Exit code 4 for a setting that does not exist, with the nearest that does."""
    if resource == _BROKERS:
        # What is set for all brokers lists nothing else; any one of them knows every name.
        client.run(client.cluster.refresh([]))
        resource = Resource(ResourceType.BROKER, str(min(client.cluster.metadata.brokers)))
    known = [entry.name for entry in client.run(admin.describe_configs(client.cluster, resource))]
    for name in names:
        if name not in known and not name.startswith(_SINGLE_LISTENER):
            nearest = get_close_matches(name, known, n=1)
            kind = resource.kind.name.lower()
            all_of_them = f"`quire configs describe {kind} {resource.name} --all` shows what there is"
            advice = f"perhaps {nearest[0]} is meant" if nearest else all_of_them
            raise Failure(f"{name} is not a setting of a {kind}; {advice}.", EXIT_NOT_FOUND)


def _own_source(resource: Resource) -> ConfigSource:
    if resource.kind == ResourceType.TOPIC:
        return ConfigSource.TOPIC
    return ConfigSource.BROKER_DEFAULT if resource == _BROKERS else ConfigSource.BROKER


def _differs(change: ConfigChange, before: ConfigEntry | None) -> bool:
    if change.operation == Operation.DELETE:
        return before is not None
    if before is None or before.value is None:
        return True
    if change.operation == Operation.SET:
        return before.value != change.value
    listed, named = before.value.split(","), (change.value or "").split(",")
    return any((word in listed) == (change.operation == Operation.SUBTRACT) for word in named)
