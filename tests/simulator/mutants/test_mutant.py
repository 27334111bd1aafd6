"""A mutant is the product's own function with one change, for as long as it is applied."""

from importlib import import_module

import pytest

from quire.raft.replicas import VoterSet
from simulator.mutants.mutant import Mutant, MutantError, applied

HALF = Mutant("half", "quire.raft.replicas:VoterSet.majority", "// 2 + 1", "// 2")


def test_a_mutant_changes_the_function_until_it_ends() -> None:
    voters = VoterSet.of_ids((1, 2, 3, 4))
    with applied(HALF):
        assert voters.majority == 2
    assert voters.majority == 3


def test_a_function_is_changed_wherever_it_was_imported() -> None:
    commit, write_txn_markers = import_module("quire.node.commit"), import_module("quire.node.api.write_txn_markers")
    mutant = Mutant("never", "quire.node.commit:when_committed", "return completed(None)", "return completed(False)")
    before = commit.when_committed
    with applied(mutant):
        assert write_txn_markers.when_committed is commit.when_committed is not before
    assert write_txn_markers.when_committed is commit.when_committed is before


@pytest.mark.parametrize(
    "mutant",
    [HALF._replace(old="// 3"), HALF._replace(where="quire.raft.replicas:VoterSet.minority")],
)
def test_a_mutant_of_code_that_is_gone_is_refused(mutant: Mutant) -> None:
    with pytest.raises(MutantError), applied(mutant):
        pass
