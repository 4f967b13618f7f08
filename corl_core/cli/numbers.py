"""Numbers on the command line."""

import argparse
from collections.abc import Callable


def multiple_of(number: int) -> Callable[[str], int]:
    """A positive whole number that `number` divides, as an argument's `type`."""

    def read(text: str) -> int:
        value = at_least(number)(text)
        if value % number:
            raise argparse.ArgumentTypeError(f"'{text}' is not a multiple of {number}")
        return value

    return read


def at_least(lowest: int) -> Callable[[str], int]:
    """A whole number that is not lower, as an argument's `type`."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = lowest - 1
        if value < lowest:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least {lowest}")
        return value

    return read
