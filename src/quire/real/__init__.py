"""The real side of the five seams: operating-system clock, chance, files, threads and sockets.

This folder and the command line are the only places that touch the operating system. It imports nothing of Quire but
the seams it fills, so whatever runs on it runs as well on the simulated ones.
"""
