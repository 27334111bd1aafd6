"""The five seams between Quire and the outside world: Clock, Random, Disk, Jobs and Transport.

Here are only the shapes. The real ones are in `quire.real`, the simulated ones in `simulator`; a tidy test keeps
socket, asyncio, os, time, random and threading out of everything else. Whatever runs behind these shapes can therefore
be crashed, restarted and replayed on virtual time.
"""

from quire.seams.clock import Clock, Timer
from quire.seams.disk import Buffer, Disk, File, FileSlice, ReadableFile
from quire.seams.jobs import Jobs
from quire.seams.random import Random
from quire.seams.transport import Listener, Network, Part, Receiver, Transport

__all__ = [
    "Buffer",
    "Clock",
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
