"""`python -m simulator.mutants`: see `simulator.mutants.main`."""

from simulator.mutants.main import main

main()
