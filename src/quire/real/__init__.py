"""The five seams on the operating system: clock, random numbers, files, threads and sockets.

Besides this package, only the command line and the client's shells use the operating system. It imports nothing of
Quire but the seams that it implements, so all code that runs on it also runs on the simulated ones.
"""
