"""The `quire` command.

`main` lists every command and imports it when it is called, so that `quire start` loads no client and `quire topics` no
node. Each folder holds the commands of one subject:

    node           start                          records        produce, consume
    storage        storage, verify, dump-log      groups         groups
    cluster        cluster, topics, configs       transactions   transactions
    pipelines      pipelines, dlq

`node/serve.py` is the only place where a node gets the real clock, disk and network. Several subjects use the modules
beside `main`: `scopes` (arguments such as TOPIC:0,1), `moments` (points in time), `reports` (one line for each name in
the arguments), `missing_topics`, `name_completion` (topics and groups in a shell) and `line_splitter`. `completion` and
`version` stand alone. What all commands share, such as options and output, is in `quire.console`.
"""
