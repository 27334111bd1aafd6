"""Changes settings for `configs alter` and `topics alter`: checks the names, and reports only what really changed.

Brokers accept removing a setting that does not exist, and setting a value that is already set. Both hide mistakes.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from quire.client.admin import configs as admin
from quire.client.admin.configs import AlterConfigOp, ConfigChange, ConfigEntry, ConfigSource, Resource, ResourceType
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import EXIT_NOT_FOUND, Failure, fail_with_all

_BROKERS = Resource(ResourceType.BROKER, "")
_SINGLE_LISTENER = "listener.name."  # Kafka has settings below it that no description contains


def change_settings(
    client: BlockingClient, resource: Resource, changes: Sequence[ConfigChange], *, validate_only: bool = False
) -> list[str]:
    """Makes the changes, and returns the names of the settings whose values have changed."""
    removed = [change.name for change in changes if change.operation == AlterConfigOp.DELETE]
    if removed:
        check_names(client, resource, removed)
    before = client.run(admin.describe_configs(client.cluster, resource, {change.name for change in changes}))
    own = {entry.name: entry for entry in before if entry.source == _own_source(resource)}
    client.run(admin.alter_configs(client.cluster, resource, changes, validate_only=validate_only))
    return list(dict.fromkeys(change.name for change in changes if _differs(change, own.get(change.name))))


def check_names(client: BlockingClient, resource: Resource, names: Iterable[str]) -> None:
    """Fails with exit code 4 if settings do not exist, and suggests for each the nearest one that does."""
    if resource == _BROKERS:
        # The settings of all brokers contain only what is set; a single broker describes every setting.
        client.run(client.cluster.refresh([]))
        resource = Resource(ResourceType.BROKER, str(min(client.cluster.metadata.brokers)))
    known = [entry.name for entry in client.run(admin.describe_configs(client.cluster, resource))]
    fail_with_all(
        [
            _unknown(resource, name, known)
            for name in names
            if name not in known and not name.startswith(_SINGLE_LISTENER)
        ]
    )


def _unknown(resource: Resource, name: str, known: Sequence[str]) -> Failure:
    nearest = get_close_matches(name, known, n=1)
    kind = resource.kind.name.lower()
    all_of_them = f"`quire configs describe {kind} {resource.name} --all` lists them."
    advice = f"did you mean {nearest[0]}?" if nearest else all_of_them
    return Failure(f"{name} is not a setting of a {kind}; {advice}", EXIT_NOT_FOUND)


def _own_source(resource: Resource) -> ConfigSource:
    if resource.kind == ResourceType.TOPIC:
        return ConfigSource.TOPIC
    return ConfigSource.BROKER_DEFAULT if resource == _BROKERS else ConfigSource.BROKER


def _differs(change: ConfigChange, before: ConfigEntry | None) -> bool:
    if change.operation == AlterConfigOp.DELETE:
        return before is not None
    if before is None or before.value is None:
        return True
    if change.operation == AlterConfigOp.SET:
        return before.value != change.value
    listed, named = before.value.split(","), (change.value or "").split(",")
    return any((word in listed) == (change.operation == AlterConfigOp.SUBTRACT) for word in named)
