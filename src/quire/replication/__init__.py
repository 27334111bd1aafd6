"""One partition's leader: in-sync replicas, high watermark, leader epochs, and the requests that wait for them.

`Partition` is what handlers talk to. It decides; `quire.storage` keeps. Nothing here knows requests' wire forms,
sockets or the controller: what the cluster looks like is told to it through `become_leader`.
"""
