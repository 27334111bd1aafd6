"""All mutants, by name."""

from simulator.mutants import consensus, coordinators, disks, elections, logs, replicas
from simulator.mutants.mutant import Mutant

MUTANTS: dict[str, Mutant] = {
    mutant.name: mutant
    for module in (consensus, elections, replicas, logs, coordinators, disks)
    for mutant in module.MUTANTS
}
