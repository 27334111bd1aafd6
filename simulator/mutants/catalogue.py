"""All mutants, by name."""

from simulator.mutants import consensus, coordinators, elections, logs, replicas
from simulator.mutants.mutant import Mutant

MUTANTS: dict[str, Mutant] = {
    mutant.name: mutant for module in (consensus, elections, replicas, logs, coordinators) for mutant in module.MUTANTS
}
