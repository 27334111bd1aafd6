"""`python -m simulator`, in Quire's folder: the simulator is not part of the installed package."""

from simulator.main import main

main()
