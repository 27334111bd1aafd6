"""A module has a test file of the same name, or is listed here with the tests that it shares with others."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src"
FOLDERS = {"pyspark_quire": "spark", "quire_samples": "samples", "quire": "."}
"""The tests of a package; those of `quire` are in a folder for each of its packages."""

BRANCHES = (ast.If, ast.IfExp, ast.For, ast.While, ast.Try, ast.Match, ast.BoolOp, ast.comprehension)
"""A module without any of these in a function only declares something, and needs no tests."""

TESTED_TOGETHER = (
    ("pyspark_quire", "spark/source", "arrow batch_reader bounds columns fetching group_progress loss"),
    ("pyspark_quire", "spark/sink", "batch_writer mark_keeper marker_topic marks row_producer sink_driver sink_task"),
    ("pyspark_quire", "spark/sink", "stream_task stream_writer"),
    ("quire/cli", "cli/test_missing_names.py", "missing_topics reports"),
    ("quire/cli", "cli/test_completion.py", "name_completion"),
    ("quire/cli", "cli/test_command_line.py", "version"),
    ("quire/cli/cluster", "cli/cluster/test_configs.py", "config_changes"),
    ("quire/cli/cluster", "cli/cluster/test_quorum.py", "brokers cluster status"),
    ("quire/cli/cluster", "cli/cluster/test_restart.py", "check_restart restart_view"),
    ("quire/cli/groups", "cli/groups/test_groups.py", "describe reset_offsets views"),
    ("quire/cli/node", "cli/node/test_start.py", "parent serve"),
    ("quire/cli/node/local", "cli/node/local/test_supervisor.py", "child description readiness"),
    ("quire/cli/node/local", "cli/cluster/test_restart.py", "restarts supervisor_client"),
    ("quire/cli/cluster", "cli/partitions/test_reassign.py", "balance"),
    ("quire/cli/partitions", "cli/partitions/test_partitions.py", "elect status"),
    ("quire/cli/partitions", "cli/partitions/test_reassign.py", "carry_out in_progress planning throttle"),
    ("quire/cli/pipelines", "cli/pipelines/test_dlq_replay.py", "committed_records dlq_marks dlq_reading"),
    ("quire/cli/pipelines", "spark/shop/test_pipelines_check.py", "check"),
    ("quire/cli/pipelines", "spark/shop/test_pipelines_command.py", "pipelines run state"),
    ("quire/cli/records", "cli/records/test_records.py", "consume line_sender lines produce record_printer"),
    ("quire/cli/storage", "cli/storage/test_storage.py", "existing first_voters"),
    ("quire/cli/storage/dump", "cli/storage/dump", "files json_lines read_only"),
    ("quire/cli/transactions", "cli/transactions/test_transactions.py", "open_transactions"),
    ("quire/client", "client/test_producer.py", "accumulator batch leaders producer_identity"),
    ("quire/client", "client/test_group_membership.py", "classic_member consumer_member"),
    ("quire/client", "client/test_consumer.py", "refresher"),
    ("quire/client", "client/test_cluster.py", "errors link"),
    ("quire/client", "client/test_shell_blocking.py", "shell_socket"),
    ("quire/client/admin", "cli/partitions/test_partitions.py", "partition_states"),
    ("quire/client/admin", "cli/partitions/test_reassign.py", "placements"),
    ("quire/client/admin", "client/test_hanging_transactions.py", "partition_producers"),
    ("quire/client/admin", "cli/disks/test_disks.py", "log_dirs"),
    ("quire/client/admin", "client/test_admin.py", "brokers configs groups leader_elections quorum"),
    ("quire/client/admin", "client/test_admin.py", "reassignments results topics"),
    (
        "quire/client/placement",
        "client/placement/test_planner.py",
        "candidates disk_use layout leaderships model needed_moves racks replica_counts",
    ),
    ("quire/config", "config/test_broker_config.py", "allowed describe listeners rules typed_values"),
    ("quire/console", "cli/test_missing_names.py", "failure"),
    ("quire/console", "cli/test_command_line.py", "groups options"),
    ("quire/controller", "controller/test_active_controller.py", "command_runner controller_result quorum voters"),
    ("quire/controller", "controller/test_allocate_producer_ids.py", "producer_ids"),
    ("quire/controller", "controller/test_alter_configs.py", "configs"),
    ("quire/controller", "controller/test_update_features.py", "features"),
    ("quire/controller", "controller/test_create_topics.py", "assignments topic_names"),
    ("quire/controller", "controller/test_elections.py", "partition_change"),
    ("quire/controller", "controller/test_metadata_replica.py", "log_config"),
    ("quire/coordinators/group/classic", "coordinators/group/classic/test_classic_groups.py", "join_response member"),
    (
        "quire/coordinators/group/consumer",
        "coordinators/group/consumer/test_consumer_groups.py",
        "changes consumer_group",
    ),
    ("quire/coordinators/group/consumer", "coordinators/group/consumer/test_consumer_groups.py", "describe freshness"),
    ("quire/coordinators/group/consumer", "coordinators/group/consumer/test_consumer_groups.py", "member membership"),
    ("quire/coordinators/group/consumer", "coordinators/group/consumer/test_consumer_groups.py", "regex_subscriptions"),
    ("quire/coordinators/group/consumer", "coordinators/group/consumer/test_consumer_groups.py", "records requests"),
    ("quire/coordinators/group/consumer", "coordinators/group/consumer/test_migration.py", "embedded_protocol"),
    ("quire/coordinators/group/consumer", "coordinators/group/consumer/test_migration.py", "member_removal"),
    (
        "quire/coordinators/group/consumer/assignors",
        "coordinators/group/consumer/assignors",
        "assignor holdings load_levelling turns",
    ),
    ("quire/coordinators/group/offsets", "coordinators/group/offsets/test_offsets_model.py", "offsets"),
    ("quire/coordinators/regex", "coordinators/regex/test_topic_regex.py", "automaton characters syntax"),
    ("quire/coordinators/runtime", "coordinators/runtime/test_shard.py", "runtime shard_timers unsent"),
    ("quire/coordinators/transaction", "coordinators/transaction/test_marker_sender.py", "pending_markers"),
    ("quire/coordinators/transaction", "coordinators/transaction/test_end_txn.py", "ending"),
    ("quire/coordinators/transaction", "coordinators/transaction/test_machine.py", "transactions"),
    ("quire/metadata", "metadata/test_replay.py", "delta node_images partition_image"),
    ("quire/network", "network/test_connection.py", "idle_check"),
    ("quire/node", "node/test_directory_assignments.py", "assignment_request"),
    ("quire/node", "node/test_to_controller.py", "answers channel controller_link controller_request leader_hints"),
    ("quire/node", "node/test_refusals.py", "authorizer"),
    ("quire/node", "node/api/test_alter_configs.py", "config_resources"),
    ("quire/node", "node/test_data_directories.py", "directories"),
    ("quire/node", "node/test_dispatch.py", "faults"),
    ("quire/node", "node/test_coordinators.py", "group_requests topic_settings transaction_shard"),
    ("quire/node", "node/test_broker_lifecycle.py", "node_links registration"),
    ("quire/node", "node/test_quorum.py", "quorum_progress quorum_requests"),
    ("quire/node/partitions", "node/partitions/test_partitions.py", "hosted log_deletions log_placement"),
    ("quire/node", "node/test_compaction_on_a_node.py", "compaction"),
    ("quire/node", "node/test_own_state_log.py", "commit"),
    ("quire/node", "node/test_retention_on_a_node.py", "retention"),
    ("quire/node", "node/test_transactions_on_a_node.py", "transaction_requests"),
    ("quire/node/partitions", "node/api/test_list_offsets.py", "offset_search"),
    ("quire/node/replicas", "node/replicas/test_replication.py", "fetcher log_joining replicas"),
    ("quire/protocol", "protocol/test_codec.py", "compile_decode compile_encode packing record_parts source tags"),
    ("quire/protocol", "protocol/test_hostile_input.py", "limits"),
    ("quire/protocol/records", "protocol/records/test_arrow_columns.py", "arrow_native"),
    ("quire/protocol/records", "protocol/records/test_control_batches.py", "control"),
    ("quire/protocol/records", "protocol/records/test_reader.py", "record"),
    ("quire/protocol/records", "protocol/records/test_builder.py", "encode_native"),
    ("quire/protocol/records", "protocol/records/test_validator.py", "invalid wire_numbers"),
    ("quire/raft", "raft/test_control_state.py", "control_batches"),
    ("quire/raft", "raft/test_transcripts.py", "core messages progress replica replicas"),
    ("quire/raft", "raft/test_metadata_log.py", "deadline_timer effect_queue effect_runner effects written_batches"),
    ("quire/raft/roles", "raft/test_transcripts.py", "campaigning prospective resigned role unattached"),
    ("quire/real", "real/test_clock.py", "timers"),
    ("quire/real", "real/test_disk.py", "open_files"),
    ("quire/real", "real/test_reserved_blocks.py", "reserve_native"),
    ("quire/real", "real/test_sockets.py", "hang_ups socket_connect"),
    ("quire/seams", "simulator/test_disks_alike.py", "disk"),
    ("quire/spark", "spark/shop/test_pipelines_command.py", "java_process runner status_table"),
    (
        "quire/storage/cleaning",
        "storage/cleaning/test_compaction.py",
        "bytes_native cleaned_segment cleaning_run",
    ),
    (
        "quire/storage/cleaning",
        "storage/cleaning/test_compaction.py",
        "filtering special_batches swap transactions work",
    ),
    ("quire/storage", "storage/directory/test_failing_disk.py", "errors"),
    ("quire/storage/cleaning", "storage/cleaning/test_offset_map.py", "offset_map_builder offset_map_builder_native"),
    ("quire/storage/deleting", "storage/deleting/test_retired.py", "deleted_files"),
    ("quire/storage/directory", "storage/directory/test_log_directory.py", "directory_state durable_folder removals"),
    (
        "quire/storage/directory",
        "storage/directory/test_log_loading.py",
        "directory_start log_opener partition_folders",
    ),
    ("quire/storage/directory", "storage/directory/test_reserve.py", "reserving_disk"),
    ("quire/storage/directory", "node/moves/test_crashes.py", "future_logs"),
    ("quire/storage/log", "node/moves/test_disk_moves.py", "takeover"),
    ("quire/storage/flushing", "storage/flushing/test_flusher.py", "flush_all"),
    ("quire/storage/indexes", "storage/indexes/test_transaction_index.py", "aborted_lookup"),
    ("quire/storage/log", "storage/log", "flushing log state"),
    ("quire/storage/producers", "storage/recovery/test_log_recovery.py", "producer_replay"),
    ("quire/storage/recovery", "storage/recovery/test_log_recovery.py", "epoch_recovery index_recovery"),
    ("quire/storage/scanning", "storage/scanning/test_batch_scan.py", "batch_walk_native neighbours"),
    ("quire/storage/segment", "storage/segment", "state"),
    ("quire/storage/time_lookup", "storage/time_lookup/test_time_search.py", "searcher time_scan_native"),
    ("quire/storage/verify", "cli/storage/test_verify.py", "finding log"),
    ("quire/testing", "testing/test_cluster_nodes.py", "cluster_layout cluster_network node_process"),
    ("quire/testing", "testing/test_gateway.py", "wire_connection"),
    ("quire_samples/inventory", "spark/inventory", "lake"),
    ("quire_samples/inventory", "samples/inventory/test_processor.py", "reading"),
    ("quire_samples/inventory/cli", "samples/inventory/test_cli_inventory.py", "process"),
    ("quire_samples/live", "samples/live/test_screen.py", "colours figures"),
    ("quire_samples/live", "spark/shop/test_live_demo.py", "child demo live node_child waiting"),
)
"""A folder below src, the tests that its modules share, and the modules."""


def has_test_file(module: Path) -> bool:
    package, *inner = module.relative_to(SOURCES).parts
    folder = ROOT / "tests" / FOLDERS[package] / (inner[0] if package == "quire" and len(inner) > 1 else ".")
    name = module.stem
    return any(any(folder.rglob(f"test_{each}.py")) for each in (name, name.removesuffix("_native")))


def without_tests_of_its_own() -> Iterator[str]:
    for path in sorted(SOURCES.rglob("*.py")):
        if path.stem.startswith("__") or "messages" in path.parts or has_test_file(path):
            continue
        functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
        if any(isinstance(node, BRANCHES) for function in functions for node in ast.walk(function)):
            yield str(path.relative_to(SOURCES).with_suffix(""))


def listed() -> list[str]:
    return [f"{folder}/{name}" for folder, _, names in TESTED_TOGETHER for name in names.split()]


def test_every_module_has_a_test_file_of_its_name_or_is_listed_with_the_tests_that_it_shares() -> None:
    untested = set(without_tests_of_its_own())
    assert untested - set(listed()) == set(), "without a test file: add one, or name the tests above"
    assert set(listed()) - untested == set(), "these have a test file, or are gone: remove them above"


@pytest.mark.parametrize("tests", sorted({tests for _, tests, _ in TESTED_TOGETHER}))
def test_shared_tests_exist(tests: str) -> None:
    assert (ROOT / "tests" / tests).exists()


def test_a_module_is_listed_once() -> None:
    assert [name for name, times in Counter(listed()).items() if times > 1] == []
