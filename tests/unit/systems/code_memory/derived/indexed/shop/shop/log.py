"""A log that is written to a file of another package."""

from pathlib import Path


def save(line: str) -> None:
    with Path("shop.log").open("a") as log:
        log.write(line)
        log.close()
