#!/usr/bin/env python3
"""How many lines must be right for the checker to be: those of compiler/check, and of all that they include.

    scripts/trusted_lines.py            prints them by folder
    scripts/trusted_lines.py --write    writes them into docs/checker.md
    scripts/trusted_lines.py --check    refuses a page that is off by more than a twentieth

A header that is included counts with the .cpp of its name, and with what that includes in turn; one of kernels/ptx, the
emulator of PTX, with all of that folder. Of the standard library, Protobuf and what is generated of plan.proto nothing
is counted.
"""

import argparse
import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "checker.md"
BEGIN, END = "<!-- written by scripts/trusted_lines.py --write -->\n", "<!-- end -->"
EMULATOR = "kernels/ptx"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def defining(path):
    """The files that define what a header declares, if there are any."""
    if path.parent.as_posix() == EMULATOR:
        return [one.relative_to(REPOSITORY) for one in (REPOSITORY / EMULATOR).glob("*.cpp")]
    return [path.with_suffix(".cpp")]


def trusted():
    """Paths of all files, from the repository's root."""
    rest = [path.relative_to(REPOSITORY) for path in (REPOSITORY / "compiler/check").rglob("*") if path.suffix in {".h", ".cpp"}]
    found = set()
    while rest:
        path = rest.pop()
        if path in found or not (REPOSITORY / path).is_file():
            continue
        found.add(path)
        rest += [Path(header) for header in INCLUDE.findall((REPOSITORY / path).read_text())]
        rest += defining(path)
    return sorted(found)


def lines_by_folder():
    """(folder, files, lines), compiler/check first. What lies deeper counts with the second folder of its path."""
    folders = {}
    for path in trusted():
        folder = "/".join(path.parent.parts[:2])
        files, lines = folders.get(folder, (0, 0))
        folders[folder] = (files + 1, lines + len((REPOSITORY / path).read_text().splitlines()))
    return sorted(((folder, *counts) for folder, counts in folders.items()), key=lambda row: (row[0] != "compiler/check", row[0]))


def table():
    rows = lines_by_folder()
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    return "| folder | files | lines |\n|---|---|---|\n" + "".join(f"| {folder} | {files:,} | {lines:,} |\n" for folder, files, lines in rows)


def lines_in(text):
    """By folder, what a table says."""
    return {folder: int(lines.replace(",", "")) for folder, lines in re.findall(r"^\| (\S+) \| [\d,]+ \| ([\d,]+) \|", text, re.MULTILINE)}


def section():
    return PAGE.read_text().partition(BEGIN)[2].partition(END)[0]


def check():
    """Sentences of what is off."""
    said, counted = lines_in(section()), lines_in(table())
    for folder in sorted(said.keys() | counted.keys()):
        if abs(said.get(folder, 0) - counted.get(folder, 0)) > counted.get(folder, 0) / 20:
            yield (f"docs/checker.md says that the checker rests on {said.get(folder, 0):,} lines of {folder}; it is "
                   f"{counted.get(folder, 0):,}: run scripts/trusted_lines.py --write")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        sys.exit("\n".join(f"error: {sentence}" for sentence in check()) or 0)
    if not options.write:
        sys.exit(print(table(), end=""))
    head, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(head + BEGIN + table() + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
