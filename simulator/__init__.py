"""A whole Quire on virtual time: the simulated seams, clients at work, faults, and a checker of what must always hold.

    clock, random, disk, jobs, network     the five seams, simulated; inodes, operations, transport and trace below them
    machine, faults                        the node's host, and what goes wrong on it and around it
    clients/                               producers, consumers, an administrator, an auditor, a vandal
    ledger, checker, metadata_checker      what clients were told, and what that forbids an answer to say; the same for
                                           transactions and offsets in transaction_ledger, transaction_checker,
                                           offset_ledger, with read_committed to see a log as a consumer does
    plan, world, main                      what a seed stands for, one run of it, and the command `python -m simulator`

The node is the very code that serves clients, from request bytes to file bytes. A seed decides everything else, so that
a run that fails can be run again, exactly.
"""
