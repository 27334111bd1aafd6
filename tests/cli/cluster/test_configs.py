import json

import pytest

from quire.client.admin.configs import (
    AlterConfigOp,
    ConfigChange,
    ConfigEntry,
    Resource,
    ResourceType,
    alter_configs,
    describe_configs,
)
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError
from tests.cli.command import quire

ONE_BROKER = Resource(ResourceType.BROKER, "1")
ALL_BROKERS = Resource(ResourceType.BROKER, "")


def value_of(servers: str, *arguments: str) -> dict[str, str]:
    shown = quire("configs", "describe", *arguments, "--json", servers=servers)
    assert shown.returncode == 0, shown.stderr
    return {entry["name"]: entry["value"] for entry in json.loads(shown.stdout)}


def test_topic_settings_are_set_appended_taken_out_and_unset(servers: str) -> None:
    quire("topics", "create", "settings", servers=servers)
    alter = ("configs", "alter", "topic", "settings")
    assert quire(*alter, "--set", "retention.ms=5000", servers=servers).stdout == b"topic settings: 1 setting changed\n"
    assert value_of(servers, "topic", "settings")["retention.ms"] == "5000"
    quire(*alter, "--append", "cleanup.policy=compact", servers=servers)
    assert value_of(servers, "topic", "settings")["cleanup.policy"] == "delete,compact"
    quire(*alter, "--subtract", "cleanup.policy=delete", "--unset", "retention.ms", servers=servers)
    assert value_of(servers, "topic", "settings", "cleanup.policy", "retention.ms") == {
        "cleanup.policy": "compact",
        "retention.ms": "604800000",
    }


def test_only_what_was_set_is_shown_unless_everything_is_asked_for(servers: str) -> None:
    quire("topics", "create", "few", "-s", "max.message.bytes=2000", servers=servers)
    assert value_of(servers, "topic", "few")["max.message.bytes"] == "2000"
    assert "segment.bytes" not in value_of(servers, "topic", "few")
    assert "segment.bytes" in value_of(servers, "topic", "few", "--all")


def test_the_table_says_where_a_setting_comes_from(servers: str) -> None:
    quire("topics", "create", "origin", "-s", "retention.ms=1", servers=servers)
    lines = quire("configs", "describe", "topic", "origin", servers=servers).stdout.decode().splitlines()
    assert ["retention.ms", "1", "topic", "any", "time"] in [line.split() for line in lines]


def test_a_broker_shows_its_file_settings_and_takes_new_ones_while_it_runs(servers: str) -> None:
    assert value_of(servers, "broker", "1")["num.partitions"] == "3"
    assert quire("configs", "alter", "brokers", "--set", "message.max.bytes=500000", servers=servers).returncode == 0
    assert value_of(servers, "broker", "1", "message.max.bytes") == {"message.max.bytes": "500000"}
    assert value_of(servers, "brokers")["message.max.bytes"] == "500000"
    quire("configs", "alter", "brokers", "--unset", "message.max.bytes", servers=servers)
    assert value_of(servers, "broker", "1", "message.max.bytes") == {"message.max.bytes": "1048588"}


def test_wrong_values_and_unknown_things_are_refused_in_one_sentence(servers: str) -> None:
    quire("topics", "create", "refused", servers=servers)
    wrong = quire("configs", "alter", "topic", "refused", "--set", "retention.ms=soon", servers=servers)
    assert wrong.returncode == 1 and "retention.ms" in wrong.stderr.decode()
    assert quire("configs", "describe", "topic", "missing", servers=servers).returncode == 4
    absent = quire("configs", "describe", "broker", "77", servers=servers)
    assert absent.returncode == 4 and "the cluster has node 1 (" in absent.stderr.decode()


def test_validating_changes_nothing(servers: str) -> None:
    quire("topics", "create", "checked", servers=servers)
    arguments = ("configs", "alter", "topic", "checked", "--set", "retention.ms=9", "--validate-only")
    assert b"could be changed" in quire(*arguments, servers=servers).stdout
    assert "retention.ms" not in value_of(servers, "topic", "checked")


def test_a_setting_that_does_not_exist_is_exit_code_4_with_the_nearest_name(servers: str) -> None:
    quire("topics", "create", "unknown", servers=servers)
    for arguments, nearest in [
        (("describe", "broker", "1", "message.max.byte"), "message.max.bytes"),
        (("describe", "topic", "unknown", "segment.byte"), "segment.bytes"),
        (("alter", "topic", "unknown", "--unset", "segment.byte"), "segment.bytes"),
        (("alter", "brokers", "--unset", "message.max.byte"), "message.max.bytes"),
    ]:
        result = quire("configs", *arguments, servers=servers)
        assert result.returncode == 4, arguments
        assert f"did you mean {nearest}?" in result.stderr.decode()
    for arguments, shown in [
        (("describe", "topic", "unknown", "zzz"), "topic unknown"),
        (("describe", "broker", "1", "zzz"), "broker 1"),
        (("alter", "brokers", "--unset", "zzz"), "broker 1"),
    ]:
        result = quire("configs", *arguments, servers=servers)
        assert result.returncode == 4, arguments
        assert f"`quire configs describe {shown} --all` lists them" in result.stderr.decode()
        assert quire("configs", "describe", *shown.split(), "--all", servers=servers).returncode == 0


def test_only_what_really_changes_is_counted(servers: str) -> None:
    quire("topics", "create", "real", "--set", "segment.bytes=2000000", servers=servers)
    alter = ("configs", "alter", "topic", "real")
    both = ("--set", "segment.bytes=2000000", "--set", "max.message.bytes=5000")
    assert quire(*alter, *both, servers=servers).stdout == b"topic real: 1 setting changed\n"
    assert b"nothing to change" in quire(*alter, *both, servers=servers).stdout
    assert b"nothing to change" in quire(*alter, "--unset", "retention.ms", servers=servers).stdout
    assert b"nothing to change" in quire(*alter, "--unset", "retention.ms", "--validate-only", servers=servers).stdout
    assert b"1 setting" in quire(*alter, "--unset", "segment.bytes", servers=servers).stdout
    assert b"1 setting" in quire(*alter, "--append", "cleanup.policy=compact", servers=servers).stdout
    assert b"nothing to change" in quire(*alter, "--append", "cleanup.policy=compact", servers=servers).stdout


def test_programs_learn_what_changed(servers: str) -> None:
    quire("topics", "create", "told", servers=servers)
    arguments = ("topic", "told", "--set", "max.message.bytes=7000", "--json")
    shown = json.loads(quire("configs", "alter", *arguments, servers=servers).stdout)
    assert shown == {"kind": "topic", "name": "told", "changed": ["max.message.bytes"]}


def can_be_altered(client: BlockingClient, resource: Resource, entry: ConfigEntry) -> bool:
    operation = AlterConfigOp.DELETE if entry.value is None else AlterConfigOp.SET
    change = ConfigChange(entry.name, operation, entry.value)
    try:
        client.run(alter_configs(client.cluster, resource, [change], validate_only=True))
    except ApiError:
        return False
    return True


@pytest.mark.parametrize("altered", [ONE_BROKER, ALL_BROKERS, Resource(ResourceType.TOPIC, "agreed")])
def test_exactly_the_settings_shown_as_changeable_can_be_altered(servers: str, altered: Resource) -> None:
    """With the value that each setting has already, so that only the setting itself can be the reason."""
    quire("topics", "create", "agreed", servers=servers)
    described = ONE_BROKER if altered == ALL_BROKERS else altered
    with BlockingClient(servers) as client:
        entries = client.run(describe_configs(client.cluster, described))
        disagreeing = [entry for entry in entries if can_be_altered(client, altered, entry) == entry.read_only]
    # While eligible leader replicas are on, the whole cluster has one minimum; Kafka shows and refuses it alike.
    refused = ["min.insync.replicas"] if altered == ONE_BROKER else []
    assert [entry.name for entry in disagreeing] == refused


def test_settings_of_features_that_quire_does_not_have_are_shown_as_fixed(servers: str) -> None:
    keys = ("listeners", "ssl.keystore.location", "log.local.retention.ms")
    shown = quire("configs", "describe", "broker", "1", *keys, servers=servers).stdout.decode().splitlines()
    assert [line.split()[-2:] for line in shown[1:]] == [["at", "start"]] * 3
    for key, advice in zip(keys, ("change it and restart", "change it and restart", "no tiered storage"), strict=True):
        refused = quire("configs", "alter", "broker", "1", "--set", f"{key}=5", servers=servers)
        assert refused.returncode == 1 and advice in refused.stderr.decode()


def test_a_kind_may_be_in_the_plural(servers: str) -> None:
    quire("topics", "create", "plural", "-s", "retention.ms=1000000", servers=servers)
    one, several = (quire("configs", "describe", kind, "plural", servers=servers) for kind in ("topic", "topics"))
    assert one.returncode == 0 and one.stdout == several.stdout
