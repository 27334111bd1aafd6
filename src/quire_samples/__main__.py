"""`quire-samples`, which is also `python -m quire_samples`."""

from quire.console.program import run


def main() -> None:
    run("quire_samples.main:main")


if __name__ == "__main__":
    main()
