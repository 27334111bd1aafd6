"""Mistakes in what a log keeps besides its records (quire.storage)."""

from simulator.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "one batch of each producer is remembered, not five",
        "quire.storage.producers.producer_state:ProducerEntry.add",
        "if len(self.batches) == REMEMBERED_BATCHES:",
        "if len(self.batches) == 1:",
    ),
    Mutant(
        "a truncated log keeps its producers",
        "quire.storage.log.following:LogFollowing.truncate_to",
        "if len(self.producer_state):",
        "if False:",
    ),
    Mutant(
        "a transaction is stable from its marker on, committed or not",
        "quire.storage.producers.uncommitted_markers:UncommittedMarkers.hold_back",
        "return min(first_offset for _, first_offset in entries) if entries else None",
        "return None",
    ),
    Mutant(
        "a marker that was truncated holds the stable offset back",
        "quire.storage.producers.uncommitted_markers:UncommittedMarkers.truncated",
        "while self.entries and self.entries[-1][0] >= end_offset:",
        "while False:",
    ),
    Mutant(
        "segments are not synced",
        "quire.storage.flushing.log_flush:FlushPlan._sync_contents",
        "    for file in self.files:\n        _sync(file)\n",
        "",
    ),
    Mutant(
        "the sequence numbers of a producer are not compared",
        "quire.storage.producers.producer_state:ProducerEntry.check_order",
        "if sequence != expected:",
        "if False:",
    ),
)
