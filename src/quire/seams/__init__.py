"""The five seams between Quire and the outside world: Clock, Random, Disk, Jobs and Transport.

This package has only the interfaces. The real implementations are in `quire.real`, the simulated ones in `simulator`; a
tidy test keeps socket, asyncio, os, time, random and threading out of all other code. Code that uses only these
interfaces can be crashed, restarted and replayed on virtual time.
"""

from quire.seams.clock import Clock, Timer
from quire.seams.disk import Buffer, Disk, File, FileSlice, ReadableFile
from quire.seams.jobs import Jobs
from quire.seams.random import Random
from quire.seams.transport import Connector, Listener, Network, Part, Receiver, Transport

__all__ = [
    "Buffer",
    "Clock",
    "Connector",
    "Disk",
    "File",
    "FileSlice",
    "Jobs",
    "Listener",
    "Network",
    "Part",
    "Random",
    "ReadableFile",
    "Receiver",
    "Timer",
    "Transport",
]
