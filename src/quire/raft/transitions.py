"""Which role may follow which, and the class of each.

```
                      +----------- a higher epoch, from any role ----------+
                      v                                                    |
start ---> UNATTACHED <----- lost ----- CANDIDATE ----- won ---> LEADER ---+
   |        |      ^                     ^     |                   |
   |        |      +--- gave up ---+     |     | no answer         | stops, or lost the majority
   |   no leader                   |    won    v                   v
   |        +--------------------> PROSPECTIVE <-------------- RESIGNED <--- start (led the last epoch)
   |                                ^      |
   |                        timeout |      | the leader is known after all
   +---------------------------> FOLLOWER <+      (and from any role that learns of a leader)
```
"""

from quire.raft.roles.candidate import Candidate
from quire.raft.roles.follower import Follower
from quire.raft.roles.leader import Leader
from quire.raft.roles.prospective import Prospective
from quire.raft.roles.resigned import Resigned
from quire.raft.roles.role import Kind, Role
from quire.raft.roles.unattached import Unattached

ROLES: dict[Kind, type[Role]] = {
    role.kind: role for role in (Unattached, Prospective, Candidate, Leader, Follower, Resigned)
}

ALLOWED: dict[Kind, tuple[Kind, ...]] = {
    Kind.UNATTACHED: (Kind.UNATTACHED, Kind.PROSPECTIVE, Kind.FOLLOWER),
    Kind.PROSPECTIVE: (Kind.UNATTACHED, Kind.CANDIDATE, Kind.FOLLOWER),
    Kind.CANDIDATE: (Kind.UNATTACHED, Kind.PROSPECTIVE, Kind.LEADER, Kind.FOLLOWER),
    Kind.LEADER: (Kind.UNATTACHED, Kind.RESIGNED, Kind.FOLLOWER),
    Kind.FOLLOWER: (Kind.UNATTACHED, Kind.PROSPECTIVE, Kind.FOLLOWER),
    Kind.RESIGNED: (Kind.UNATTACHED, Kind.PROSPECTIVE, Kind.FOLLOWER),
}

STARTS_AS: tuple[Kind, ...] = (Kind.UNATTACHED, Kind.FOLLOWER, Kind.RESIGNED)
