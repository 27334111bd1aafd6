"""Mistakes in moving replicas between data directories (quire.node.moves)."""

from simulator.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a log is replaced before its copy has everything",
        "quire.node.moves.copying:Copying._read",
        "if offset < original.end_offset:",
        "if offset < original.end_offset and self.state is not MoveState.FOLLOWING:",
    ),
    Mutant(
        "a truncation does not reach the copy of a log that moves",
        "quire.node.moves.copying:Copying._follow_original",
        "if self._truncations != original.truncations:",
        "if self._truncations < 0:",
    ),
)
