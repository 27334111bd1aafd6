"""`python -m quire_samples` is the `quire-samples` command."""

from quire_samples.main import main

main()
