"""Dynamic settings, compared with Apache Kafka 4.3.1's answers to the same requests."""

import pytest

from quire.controller import configs
from quire.controller.configs import alter_configs, incremental_alter_configs
from quire.controller.controller_result import collected
from quire.metadata.image import BROKER, GROUP, TOPIC, ClusterImage, ConfigResource
from quire.metadata.partition_image import RECOVERING, PartitionImage
from quire.protocol.errors import ErrorCode
from quire.protocol.messages import alter_configs as whole
from quire.protocol.messages import incremental_alter_configs as incremental
from quire.protocol.messages.metadata_records import ConfigRecord, PartitionChangeRecord
from tests.controller.images import CONFIG, after, carried_out, cluster, partition, setting, topic

SET, DELETE, APPEND, SUBTRACT = range(4)
Change = tuple[str, int, str | None]
IMAGE = cluster(topic(), setting(TOPIC, "orders", "retention.ms", "5"), setting(TOPIC, "orders", "segment.ms", "7"))


def change(
    type_: int, name: str, *changes: Change, image: ClusterImage = IMAGE, validate_only: bool = False
) -> tuple[int, dict[str, str]]:
    """The error code, and the resource's settings afterwards."""
    settings = [
        incremental.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = incremental.AlterConfigsResource(resource_type=type_, resource_name=name, configs=settings)
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    result = collected(incremental_alter_configs(image, CONFIG, request))
    answered = result.response.responses[0]
    assert (answered.resource_type, answered.resource_name) == (type_, name)
    assert (answered.error_message is None) == (answered.error_code == 0)
    return answered.error_code, after(image, result.records).configs.get(ConfigResource(type_, name), {})


def replace(type_: int, name: str, *settings: tuple[str, str | None]) -> tuple[int, dict[str, str]]:
    configs = [whole.AlterableConfig(name=key, value=value) for key, value in settings]
    resource = whole.AlterConfigsResource(resource_type=type_, resource_name=name, configs=configs)
    result = collected(alter_configs(IMAGE, CONFIG, whole.AlterConfigsRequest(resources=[resource])))
    return result.response.responses[0].error_code, after(IMAGE, result.records).configs.get(
        ConfigResource(type_, name), {}
    )


def test_a_setting_is_set_and_the_others_stay() -> None:
    assert change(TOPIC, "orders", ("retention.ms", SET, "9")) == (0, {"retention.ms": "9", "segment.ms": "7"})


def test_a_setting_is_deleted() -> None:
    assert change(TOPIC, "orders", ("retention.ms", DELETE, None)) == (0, {"segment.ms": "7"})


def test_a_list_is_added_to_and_taken_from() -> None:
    code, settings = change(TOPIC, "orders", ("cleanup.policy", APPEND, "compact"))
    assert (code, settings["cleanup.policy"]) == (0, "delete,compact")
    both = cluster(topic(), setting(TOPIC, "orders", "cleanup.policy", "delete,compact"))
    assert change(TOPIC, "orders", ("cleanup.policy", SUBTRACT, "delete"), image=both) == (
        0,
        {"cleanup.policy": "compact"},
    )


def test_a_change_that_changes_nothing_writes_nothing() -> None:
    settings = [incremental.AlterableConfig(name="retention.ms", config_operation=SET, value="5")]
    resource = incremental.AlterConfigsResource(resource_type=TOPIC, resource_name="orders", configs=settings)
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource])
    assert collected(incremental_alter_configs(IMAGE, CONFIG, request)).records == []


def test_deleting_an_unknown_setting_is_allowed() -> None:
    assert change(TOPIC, "orders", ("nope", DELETE, None))[0] == 0
    left_over = cluster(topic(), setting(TOPIC, "orders", "nope", "1"))
    assert change(TOPIC, "orders", ("nope", DELETE, None), image=left_over) == (0, {})


def test_validating_writes_nothing() -> None:
    before = IMAGE.topic_configs("orders")
    assert change(TOPIC, "orders", ("retention.ms", SET, "9"), validate_only=True) == (0, before)


@pytest.mark.parametrize(
    ("type_", "name", "asked", "code"),
    [
        (TOPIC, "orders", ("nope", SET, "5"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", ("retention.ms", SET, "x"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", ("retention.ms", APPEND, "5"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", ("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (TOPIC, "orders", ("retention.ms", 9, "5"), ErrorCode.INVALID_REQUEST),
        (TOPIC, "gone", ("retention.ms", SET, "5"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ("retention.ms", SET, "5"), ErrorCode.INVALID_REQUEST),
        (TOPIC, "a b", ("retention.ms", SET, "5"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "9", ("log.cleaner.threads", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ("log.cleaner.threads", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("node.id", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("log.cleaner.threads", SET, "zz"), ErrorCode.INVALID_REQUEST),
        (99, "x", ("a", SET, "1"), ErrorCode.INVALID_REQUEST),
    ],
    ids=str,
)
def test_changes_that_cannot_be(type_: int, name: str, asked: Change, code: ErrorCode) -> None:
    before = IMAGE.configs.get(ConfigResource(type_, name), {})
    assert change(type_, name, asked) == (code, before)


def test_one_bad_setting_spoils_its_resource() -> None:
    asked = [("retention.ms", SET, "9"), ("segment.ms", SET, "x")]
    assert change(TOPIC, "orders", *asked) == (ErrorCode.INVALID_CONFIG, IMAGE.topic_configs("orders"))


def test_a_setting_changed_twice_is_refused() -> None:
    asked = [("retention.ms", SET, "9"), ("retention.ms", DELETE, None)]
    assert change(TOPIC, "orders", *asked)[0] == ErrorCode.INVALID_REQUEST


def test_brokers_have_settings_of_their_own_and_in_common() -> None:
    assert change(BROKER, "", ("log.cleaner.threads", SET, "2")) == (0, {"log.cleaner.threads": "2"})
    assert change(BROKER, "1", ("log.cleaner.threads", SET, "2")) == (0, {"log.cleaner.threads": "2"})


def test_a_resource_named_twice_is_refused_and_the_others_are_changed() -> None:
    def resource(name: str) -> incremental.AlterConfigsResource:
        settings = [incremental.AlterableConfig(name="retention.ms", config_operation=SET, value="9")]
        return incremental.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=settings)

    image = cluster(topic(), topic("other", b"o" * 16))
    request = incremental.IncrementalAlterConfigsRequest(
        resources=[resource("orders"), resource("other"), resource("orders")]
    )
    result = collected(incremental_alter_configs(image, CONFIG, request))
    assert [each.error_code for each in result.response.responses] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
    ]
    assert list(after(image, result.records).configs) == [ConfigResource(TOPIC, "other")]


def test_min_insync_replicas_is_the_clusters_while_replicas_outside_the_isr_are_eligible() -> None:
    image = cluster(topic(), features={"eligible.leader.replicas.version": 1})
    refused = ErrorCode.INVALID_CONFIG
    assert change(BROKER, "1", ("min.insync.replicas", SET, "2"), image=image)[0] == refused
    assert change(BROKER, "", ("min.insync.replicas", DELETE, None), image=image)[0] == refused
    assert change(BROKER, "", ("min.insync.replicas", SET, "2"), image=image)[0] == 0


def test_the_old_request_replaces_all_settings() -> None:
    assert replace(TOPIC, "orders", ("retention.ms", "9")) == (0, {"retention.ms": "9"})
    assert replace(TOPIC, "orders") == (0, {})


@pytest.mark.parametrize(
    ("type_", "name", "settings", "code"),
    [
        (TOPIC, "orders", [("nope", "9")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", [("retention.ms", None)], ErrorCode.INVALID_REQUEST),
        (TOPIC, "orders", [("retention.ms", "1"), ("retention.ms", "2")], ErrorCode.INVALID_REQUEST),
        (TOPIC, "gone", [("retention.ms", "9")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "1", [("node.id", "3")], ErrorCode.INVALID_REQUEST),
        (99, "x", [], ErrorCode.INVALID_REQUEST),
    ],
    ids=str,
)
def test_replacements_that_cannot_be(
    type_: int, name: str, settings: list[tuple[str, str | None]], code: ErrorCode
) -> None:
    assert replace(type_, name, *settings) == (code, IMAGE.configs.get(ConfigResource(type_, name), {}))


# --- Groups


def test_a_group_that_does_not_exist_may_have_settings() -> None:
    given = ("consumer.assignment.interval.ms", SET, "2000")
    assert change(GROUP, "readers", given) == (0, {"consumer.assignment.interval.ms": "2000"})
    known = cluster(setting(GROUP, "readers", "consumer.assignment.interval.ms", "2000"))
    assert change(GROUP, "readers", ("consumer.assignment.interval.ms", DELETE, None), image=known) == (0, {})


@pytest.mark.parametrize(
    ("group", "given", "code"),
    [
        ("", ("consumer.assignment.interval.ms", SET, "2000"), ErrorCode.INVALID_REQUEST),
        ("g", ("consumer.session.timeout.ms", SET, "1"), ErrorCode.INVALID_CONFIG),
        ("g", ("consumer.session.timeout.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        ("g", ("consumer.nothing", SET, "1"), ErrorCode.INVALID_CONFIG),
        ("g", ("share.session.timeout.ms", SET, "45000"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_settings_that_a_group_cannot_have_are_refused(group: str, given: Change, code: ErrorCode) -> None:
    assert change(GROUP, group, given) == (code, {})


def test_only_a_limited_number_of_groups_have_their_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configs, "MOST_GROUPS", 1)
    known = cluster(setting(GROUP, "readers", "consumer.assignment.interval.ms", "2000"))
    given = ("consumer.assignment.interval.ms", SET, "3000")
    assert change(GROUP, "readers", given, image=known)[0] == ErrorCode.NONE
    assert change(GROUP, "others", given, image=known) == (ErrorCode.POLICY_VIOLATION, {})


# --- Settings that decide about ISRs and leaders

ELIGIBLE = {"eligible.leader.replicas.version": 1}
OF_TWO = setting(BROKER, "", "min.insync.replicas", "2")


def decided(image: ClusterImage, type_: int, name: str, *changes: Change) -> PartitionImage:
    """Partition 0 of orders after the change. Its eligible replicas are cleared before the settings or with them."""
    settings = [
        incremental.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = incremental.AlterConfigsResource(resource_type=type_, resource_name=name, configs=settings)
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource])
    result = carried_out(image, lambda later: incremental_alter_configs(later, CONFIG, request))
    assert result.response.responses[0].error_code == ErrorCode.NONE, result.response.responses[0].error_message
    return after(image, result.records).topics_by_name["orders"].partitions[0]


@pytest.mark.parametrize(("type_", "name"), [(TOPIC, "orders"), (BROKER, "")])
def test_a_lower_minimum_ends_the_eligibility_of_replicas_that_will_fall_behind(type_: int, name: str) -> None:
    image = cluster(topic(), partition(0, (1, 2, 3), (1,), elr=(2, 3)), OF_TWO, brokers=3, features=ELIGIBLE)
    later = decided(image, type_, name, ("min.insync.replicas", SET, "1"))
    assert (later.isr, later.elr, later.leader, later.leader_epoch) == ((1,), (), 1, 0)


def test_eligible_replicas_are_cleared_before_the_minimum_is_lower() -> None:
    parts = [partition(index, (1, 2, 3), (1,), elr=(2, 3)) for index in range(2)]
    image = cluster(topic(), *parts, OF_TWO, brokers=3, features=ELIGIBLE)
    lower = incremental.AlterableConfig(name="min.insync.replicas", config_operation=SET, value="1")
    resource = incremental.AlterConfigsResource(resource_type=TOPIC, resource_name="orders", configs=[lower])
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource])
    result = carried_out(image, lambda later: incremental_alter_configs(later, CONFIG, request))
    assert [type(record) for record in result.records] == [PartitionChangeRecord, PartitionChangeRecord, ConfigRecord]


def test_a_topic_without_a_minimum_of_its_own_has_that_of_the_cluster() -> None:
    own = setting(TOPIC, "orders", "min.insync.replicas", "3")
    image = cluster(topic(), partition(0, (1, 2, 3), (1, 2), elr=(3,)), OF_TWO, own, brokers=3, features=ELIGIBLE)
    assert decided(image, BROKER, "", ("min.insync.replicas", SET, "1")).elr == (3,)
    assert decided(image, TOPIC, "orders", ("min.insync.replicas", DELETE, None)).elr == ()


def test_a_higher_minimum_makes_no_further_replica_eligible() -> None:
    image = cluster(topic(), partition(0, (1, 2, 3), (1, 2), elr=()), OF_TWO, brokers=3, features=ELIGIBLE)
    assert decided(image, TOPIC, "orders", ("min.insync.replicas", SET, "3")).elr == ()


@pytest.mark.parametrize(("type_", "name"), [(TOPIC, "orders"), (BROKER, "")])
@pytest.mark.parametrize("features", [{}, ELIGIBLE], ids=["isr", "elr"])
def test_a_partition_without_a_leader_gets_one_when_unclean_elections_are_allowed(
    type_: int, name: str, features: dict[str, int]
) -> None:
    isr, elr = ((), (2,)) if features else ((2,), ())
    waiting = partition(0, (1, 2), isr, -1, elr=elr)
    image = cluster(topic(), waiting, brokers=1, features=features)
    assert (
        decided(image, type_, name, ("retention.ms" if type_ == TOPIC else "message.max.bytes", SET, "5000")).leader
        == -1
    )
    later = decided(image, type_, name, ("unclean.leader.election.enable", SET, "true"))
    assert (later.leader, later.isr, later.elr, later.leader_recovery_state) == (1, (1,), (), RECOVERING)


def test_a_topic_may_forbid_what_the_cluster_allows() -> None:
    forbids = setting(TOPIC, "orders", "unclean.leader.election.enable", "false")
    image = cluster(topic(), partition(0, (1, 2), (2,), -1), forbids, brokers=1)
    assert decided(image, BROKER, "", ("unclean.leader.election.enable", SET, "true")).leader == -1


def test_a_strategy_of_unclean_recovery_is_no_setting_of_kafka_4_3() -> None:
    assert change(TOPIC, "orders", ("unclean.recovery.strategy", SET, "Balanced"))[0] == ErrorCode.INVALID_CONFIG
