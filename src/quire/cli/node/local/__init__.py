"""`quire start --nodes N`: a whole cluster on one machine, one process per node, under one supervisor.

`plan` decides the settings of each node, `description` stores the description of the cluster in its folder, and
`formatting` writes the data directories. `supervisor` starts each node as a `child` process, waits until all serve
(`readiness`), restarts one that dies, and stops them. `ports` keeps free ports for clusters that choose their own.
"""
