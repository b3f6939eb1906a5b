#!/usr/bin/env python3
"""Lines of production code by room, a folder of two levels: how large each is, now and before.

    scripts/room_lines.py              prints a table of today
    scripts/room_lines.py REVISION     beside that of a revision of git
    scripts/room_lines.py --write      writes today's column into docs/architecture.md; what stood there as before stays
    scripts/room_lines.py --check      refuses a page that is off by more than a twentieth

Generated code, tests, benches and models are no production code. A .td or .proto file counts as C++ does.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "architecture.md"
BEGIN, END = "<!-- written by scripts/room_lines.py --write -->\n", "<!-- end of rooms -->"
CODE = {".cpp", ".h", ".inc", ".td", ".proto", ".cu", ".cuh"}
HOUSES = ("compiler", "core", "dialects", "kernels", "runtime", "tools")


def git(*arguments):
    return subprocess.run(["git", "-C", str(REPOSITORY), *arguments], check=True, capture_output=True, text=True, errors="replace").stdout


def lines_of(revision=None):
    """{room: lines} of a revision, or of the files as they are."""
    rooms = Counter()
    names = git("ls-tree", "-r", "--name-only", revision, *HOUSES) if revision else git("ls-files", *HOUSES)
    paths = [path for path in map(Path, names.splitlines()) if path.suffix in CODE]
    for path in paths:
        text = git("show", f"{revision}:{path}") if revision else (REPOSITORY / path).read_text(errors="replace")
        rooms["/".join(path.parent.parts[:2])] += len(text.splitlines())
    return rooms


def table(now, before, title):
    rows = [(room, before.get(room, 0), now.get(room, 0)) for room in sorted(now.keys() | before.keys())]
    rows.append(("all", sum(before.values()), sum(now.values())))
    return f"| room | {title} | now |\n|---|---|---|\n" + "".join(f"| {room} | {old:,} | {new:,} |\n" for room, old, new in rows)


def written():
    """What the page says: its title of before, and {room: lines} of before and now."""
    section = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    rows = re.findall(r"^\| ([\w/-]+) \| ([\d,]+) \| ([\d,]+) \|$", section, re.MULTILINE)
    title = re.search(r"^\| room \| (.*?) \|", section, re.MULTILINE)
    return (title[1] if title else "before", *({row[0]: int(row[i].replace(",", "")) for row in rows if row[0] != "all"} for i in (1, 2)))


def check():
    """Sentences of what is off."""
    _, _, said = written()
    now = lines_of()
    for room in sorted(said.keys() | now.keys()):
        if abs(said.get(room, 0) - now.get(room, 0)) > now.get(room, 0) / 20:
            yield (f"docs/architecture.md says that {room} has {said.get(room, 0):,} lines; it has {now.get(room, 0):,}: "
                   "run scripts/room_lines.py --write")


def write(before, title):
    head, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(head + BEGIN + table(lines_of(), before, title) + END + rest.partition(END)[2])


def main():
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    if word in ("-h", "--help"):
        print(__doc__)
    elif word == "--check":
        sys.exit("\n".join(f"error: {sentence}" for sentence in check()) or 0)
    elif word == "--write":
        title, before, _ = written()
        write(lines_of(sys.argv[2]) if len(sys.argv) > 2 else before, sys.argv[3] if len(sys.argv) > 3 else title)
    else:
        print(table(lines_of(), lines_of(word) if word else {}, word or "before"), end="")


if __name__ == "__main__":
    main()
