"""A whole Quire on virtual time: the simulated seams, a workload, faults, and a checker of what must always hold."""
