"""The building blocks of commands that work with a cluster.

The `quire` command is made of them, and so are the samples; a command of your own can use them too. Nothing here knows
a particular command.

- `groups`: command groups that import a command when it is called; `failure`: an error as a sentence and an exit code;
  `explain`: the errors of brokers and of the client as such sentences
- `options`: options that several commands share (brokers, time-out, JSON), their types, and `connect`
- `terminal`: all output, with control characters escaped (`printable`); `colour`; `output`: tables and JSON;
  `live_screen`: a view that is redrawn in place
- `program`: the start of a program; `stopping`: an orderly end on Ctrl-C and SIGTERM
"""
