"""Whole clusters of Quire on virtual time: the simulated seams, clients at work, faults, and a checker of its promises.

    clock, random, disk, jobs, network     the five seams, simulated; inodes, disk_calls, transport and trace below them
    machine, process, faults               the host of a node, its process, and the faults on it and around it
    clients/                               producers, consumers, an administrator, an auditor, a vandal
    white_box/                             what the nodes of a cluster believe, compared
    ledger, checker, metadata_checker      what clients learned, and whether an answer agrees with it; the same for
                                           transactions and offsets in transaction_ledger, transaction_checker,
                                           offset_ledger, with read_committed to see a log as a consumer does
    plan, cluster_plan, cast, world, main  what a seed decides, one run of it, and the command `python -m simulator`

The node is the production code, from request bytes to file bytes. A seed decides everything else, so a run that
fails can be repeated exactly.
"""
