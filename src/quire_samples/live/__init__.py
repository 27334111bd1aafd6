"""Whole systems that you can watch: `live` is `make run`, `broker` is `make broker`.

`live` starts a node (`node_child`), the senders and the pipelines (`demo`, each a `child` process), reads their results
(`figures`), shows them (`screen`) and stops everything in order (`ending`).
"""
