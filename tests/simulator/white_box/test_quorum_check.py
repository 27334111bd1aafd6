"""The check of the metadata quorum: every contradiction between two nodes is found."""

from simulator.life import Life
from simulator.white_box.quorum_check import ONE_CONTROLLER, ONE_LEADER, WATERMARK, QuorumCheck
from tests.simulator.expected_violation import expect


def test_nodes_may_believe_in_different_leaders_in_different_epochs_only() -> None:
    check = QuorumCheck()
    check.believes("node-1", 1, 1)
    check.believes("node-2", 2, 2)
    check.believes("node-3", 2, 2)
    with expect(ONE_LEADER):
        check.believes("node-1", 2, 1)


def test_two_active_controllers_in_one_epoch_are_found() -> None:
    check = QuorumCheck()
    check.controls("node-1", 1)
    check.controls("node-1", 1)
    check.controls("node-2", 2)
    with expect(ONE_CONTROLLER):
        check.controls("node-2", 1)


def test_a_high_watermark_beyond_the_log_is_found() -> None:
    with expect(WATERMARK):
        QuorumCheck().has_committed(Life("node-1", 1), 11, 10)


def test_a_high_watermark_may_go_back_with_a_restart_only() -> None:
    check = QuorumCheck()
    check.has_committed(Life("node-1", 1), 10, 10)
    check.has_committed(Life("node-1", 2), 8, 10)
    with expect(WATERMARK):
        check.has_committed(Life("node-1", 2), 7, 10)
