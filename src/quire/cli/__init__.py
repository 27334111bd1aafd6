"""The `quire` command.

`main` knows every command by name and imports it when it is called, so that `quire start` loads no client and
`quire topics` no node. `serve` is the one place where a node meets the real clock, disk and network.
"""
