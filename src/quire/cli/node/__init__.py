"""`quire start`: runs a node.

`start` is the command, `config` reads its settings, `serve` joins the node to the real clock, disk and network, and
`control` injects faults for tests through standard input. `local` has the supervisor of `--nodes`. `temporary` has the
data folders of ephemeral nodes, `parent` ends a process with its parent, and `lasting_objects` keeps the
garbage collector away from long-lived objects.
"""
