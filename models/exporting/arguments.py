"""Command-line pieces that export.py and prepare_data.py share."""

import argparse


class Parser(argparse.ArgumentParser):
    """Wrong usage is one line on stderr and exit code 2."""

    def error(self, message):
        self.exit(2, f"error: {message}; see {self.prog} --help\n")


def positive(text: str) -> int:
    """A whole number, 1 or more."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return value
