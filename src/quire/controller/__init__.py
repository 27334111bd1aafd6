"""The metadata replica of a node, and the active controller on the node that leads the quorum.

`metadata_replica.py` joins the metadata log to the image. While its node leads, it holds the `active_controller.py`,
which hands each request to a manager: topics, partitions, configs, features, brokers, producer ids. Managers are plain
functions from the image and a request to records and a response; they write nothing and wait for nothing.
`command_runner.py` writes the records and sends the response once they are committed. `elections.py` and
`replica_placement.py` are shared by several managers.
"""
