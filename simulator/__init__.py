"""Whole clusters of Quire on virtual time: the simulated seams, clients at work, faults, and a checker of its promises.

    clock, random, disk, jobs, network     the five seams, simulated; inodes, disk_calls, transport and trace below them
    machine, process, faults               the host of a node, its process, and the faults on it and around it
    plan, cluster_plan, cast               what a seed decides
    world                                  one run: stepper, node_lives, audits and final_checks are its parts
    clients/                               producers, consumers, an administrator, an auditor, a vandal
    ledger and the other ledgers           what clients requested and what they were answered
    checks/                                whether an answer agrees with what clients know
    white_box/                             what the nodes of a cluster believe, compared
    main                                   the command `python -m simulator`

The node is the production code, from request bytes to file bytes. A seed decides everything else, so a run that
fails can be repeated exactly.
"""
