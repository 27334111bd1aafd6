"""`python -m quire` is the `quire` command."""

from quire.cli.main import main

main()
