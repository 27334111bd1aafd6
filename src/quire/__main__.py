"""`quire`, which is also `python -m quire`."""

from quire.console.program import run


def main() -> None:
    run("quire.cli.main:main")


if __name__ == "__main__":
    main()
