"""Mistakes in who leads a partition and who is in sync, as the controller decides it (quire.controller)."""

from simulator.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a broker that lost its power stays eligible",
        "quire.controller.brokers:_was_unclean",
        "return has_eligible_leader_replicas(image.features) and not is_clean",
        "return False",
    ),
    Mutant(
        "any replica may lead",
        "quire.controller.partition_change:_elect",
        "if candidate in members and can_lead(candidate):",
        "if can_lead(candidate):",
    ),
    Mutant(
        "AlterPartition does not compare partition epochs",
        "quire.controller.alter_partition:_check_epochs",
        "if wanted.partition_epoch < partition.partition_epoch:",
        "if False:",
    ),
    Mutant(
        "a replica joins the ISR with an old broker epoch",
        "quire.controller.alter_partition:_check_members",
        "or epoch not in (ANY_EPOCH, broker.epoch)",
        "",
    ),
    Mutant(
        "replicas stay eligible when enough others are in sync",
        "quire.controller.partition_change:_eligible",
        "return (), ()",
        "return elr, ()",
    ),
    Mutant(
        "an election keeps the leader epoch",
        "quire.metadata.partition_image:PartitionImage.changed_by",
        "leader_epoch=self.leader_epoch + 1 if elects else self.leader_epoch",
        "leader_epoch=self.leader_epoch",
    ),
    Mutant(
        "a reassignment is complete at once, with the new replicas in the ISR",
        "quire.controller.partition_change:change_partition",
        "done = completed(assignment, holders(partition, isr, elr, gone, rules))",
        "done = Assignment(assignment.target) if partition.is_reassigning else None\n"
        "    isr = done.replicas if done else isr",
    ),
)
