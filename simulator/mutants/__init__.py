"""Mutants: the product with one small mistake each, as a programmer might make it. The simulator must find them all.

    mutant.py           how a function's source is changed for one run
    hunt.py             looks for a seed that shows a mutant; main.py is the command
    catalogue.py        all of them, from the modules below, by the part of the product that they change
    consensus.py, elections.py, replicas.py, logs.py, coordinators.py

They are chosen from the product's code, without regard to what the simulator checks, and found by the seeds and checks
that are used for the real code. `make mutants` runs all of them, and `make test` some.
"""
