"""`quire features`: the levels of the cluster's features, and changing them after an upgrade (KIP-584, KIP-778)."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from quire.client.admin.cluster import Feature, UpgradeType, describe_features, update_features
from quire.console.failure import EXIT_NOT_FOUND, Failure
from quire.console.groups import HelpfulGroup
from quire.console.options import cluster_options, connect, json_option
from quire.console.output import print_json, print_table
from quire.console.terminal import echo
from quire.metadata.features import METADATA_VERSION, SUPPORTED, metadata_version_level, metadata_version_name


class Level(click.ParamType[tuple[str, int]]):
    """`group.version=1`, and for metadata.version also `metadata.version=4.2-IV1` or `metadata.version=4.2`."""

    name = "FEATURE=LEVEL"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        name, _, text = str(value).partition("=")
        level = int(text) if text.isascii() and text.isdigit() else None
        if level is None and name == METADATA_VERSION:
            level = metadata_version_level(text)
            if level is None and text:
                self.fail(f"{text!r} is no metadata.version: write a level, 4.2 or 4.2-IV1", param, ctx)
        if not name or level is None or level > 32_767:
            self.fail(f"{value!r} is not {self.name}, such as group.version=1", param, ctx)
        return name, level


_levels = click.argument("levels", type=Level(), nargs=-1, required=True)
_validate = click.option("--validate-only", is_flag=True, help="Check without changing anything.")


@click.group(cls=HelpfulGroup, epilog="\b\nExample:\n  quire features list")
def features() -> None:
    """Show the features of a cluster, and change their levels."""


@features.command("list", epilog="\b\nExamples:\n  quire features list\n  quire features list --json")
@json_option
@cluster_options
def list_features(as_json: bool, servers: str, timeout_s: float) -> None:
    """List features, their level in the cluster, and the levels that the broker supports. Level 0 is off."""
    with connect(servers, timeout_s) as client:
        found = client.run(describe_features(client.cluster))
    if as_json:
        print_json(
            [
                {"name": each.name, "level": each.finalized, "supported": [each.supported_min, each.supported_max]}
                for each in found
            ]
        )
        return
    rows = [
        (each.name, shown(each.name, each.finalized), f"{each.supported_min} to {each.supported_max}") for each in found
    ]
    print_table(("feature", "level", "supported"), rows)


@features.command(
    epilog="""\b
Examples:
  quire features upgrade metadata.version=4.3 --validate-only
  quire features upgrade metadata.version=4.3 group.version=1

\b
Do this when all nodes run the new version. Going back may not be possible afterwards."""
)
@_levels
@_validate
@json_option
@cluster_options
def upgrade(
    levels: Sequence[tuple[str, int]], validate_only: bool, as_json: bool, servers: str, timeout_s: float
) -> None:
    """Raise the levels of features, all of them or none."""
    _change(dict(levels), UpgradeType.UPGRADE, validate_only, as_json, servers, timeout_s)


@features.command(
    epilog="""\b
Examples:
  quire features downgrade group.version=0 --validate-only
  quire features downgrade group.version=0

\b
metadata.version goes down only as long as no metadata is lost; kraft.version does not go down."""
)
@_levels
@click.option("--unsafe", is_flag=True, help="Also if the feature may lose its metadata; not for metadata.version.")
@_validate
@json_option
@cluster_options
def downgrade(
    levels: Sequence[tuple[str, int]],
    unsafe: bool,
    validate_only: bool,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Lower the levels of features, all of them or none."""
    kind = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
    _change(dict(levels), kind, validate_only, as_json, servers, timeout_s)


def _change(
    levels: Mapping[str, int], kind: UpgradeType, validate_only: bool, as_json: bool, servers: str, timeout_s: float
) -> None:
    with connect(servers, timeout_s) as client:
        before = {each.name: each for each in client.run(describe_features(client.cluster))}
        _check_known(levels, before)
        client.run(update_features(client.cluster, levels, kind, validate_only=validate_only))
    if as_json:
        print_json(
            [
                {"name": name, "from": present, "to": level, "changed": level != present and not validate_only}
                for name, level in levels.items()
                for present in (before[name].finalized,)
            ]
        )
        return
    for name, level in levels.items():
        what = "could change" if validate_only else "changed"
        present = before[name].finalized
        echo(
            f"{name}: is at level {shown(name, level)} already"
            if level == present
            else f"{name}: {what} from level {shown(name, present)} to {shown(name, level)}"
        )


def _check_known(levels: Mapping[str, int], known: Mapping[str, Feature]) -> None:
    for name in levels:
        if name not in known:
            raise Failure(f"there is no feature {name}; the broker knows {', '.join(sorted(known))}.", EXIT_NOT_FOUND)


def shown(name: str, level: int) -> str:
    low, high = SUPPORTED[METADATA_VERSION]
    return (
        f"{level} ({metadata_version_name(level)})" if name == METADATA_VERSION and low <= level <= high else f"{level}"
    )
