#!/usr/bin/env python3
"""The graph of includes between folders: which folder needs which.

    scripts/include_graph.py               prints the graph: a line a folder, what it needs below it
    scripts/include_graph.py --check       refuses what docs/architecture.md does not allow, one sentence each
    scripts/include_graph.py --write       writes the graph into docs/architecture.md
    scripts/include_graph.py --svg FILE    draws it, where graphviz is installed

docs/architecture.md holds a table of what each folder may include, rows `| folder | may include | why |` between the
lines `<!-- folders -->` and `<!-- /folders -->`. A name that ends in `/*` stands for all folders below it; a
name with a capital letter is a library from outside (OUTSIDE).

--check refuses an arrow that is not in the table, folders that include each other in a circle, a folder of more than 40
files, a row without a folder, and a page whose graph is not the code's.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

TOP = ("compiler", "core", "dialects", "kernels", "runtime", "tools")  # tests and benches may include everything
SOURCES = {".cpp", ".cu", ".cuh", ".h", ".inc", ".proto", ".td"}
MOST_FILES = 40
PAGE = "docs/architecture.md"
INCLUDE = re.compile(r'^\s*#?\s*(?:include|import)\s+["<]([^">]+)[">]')
# Libraries from outside, by how their headers' paths begin. Others (the standard library's) are free.
OUTSIDE = {
    "mlir/": "MLIR", "llvm/": "MLIR", "google/protobuf/": "Protobuf", "nlohmann/": "JSON", "CLI/": "CLI11", "mpi.h": "MPI",
    "nccl.h": "CUDA", "cuda": "CUDA", "cublas": "CUDA", "cudnn": "CUDA", "oneapi/": "oneDNN", "onednn": "oneDNN",
}


class Graph:
    """`files`: number of sources by folder. `arrows`: (folder, what it includes) -> places "file:line includes header"."""

    def __init__(self, root):
        self.files, self.arrows = {}, {}
        for top in TOP:
            for path in sorted((root / top).rglob("*")):
                if path.suffix in SOURCES and path.is_file():
                    self._read(path, path.relative_to(root).as_posix())

    def _read(self, path, name):
        folder = name.rpartition("/")[0]
        self.files[folder] = self.files.get(folder, 0) + 1
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            found = INCLUDE.match(line)
            target = found and target_of(found[1])
            if target and target != folder:
                self.arrows.setdefault((folder, target), []).append(f"{name}:{number} includes {found[1]}")

    def below(self):
        """By folder: the folders that it includes, in order."""
        below = {folder: [] for folder in sorted(self.files)}
        for folder, target in sorted(self.arrows):
            if target in below:
                below[folder].append(target)
        return below


def target_of(header):
    """The folder of a header, the library from outside, or None for what anyone may include."""
    if header.split("/")[0] in TOP:
        return header.rpartition("/")[0]
    return next((name for start, name in OUTSIDE.items() if header.startswith(start)), None)


def circles(below):
    """Sets of folders that reach each other, each as one shortest way round."""
    reach = {folder: reachable(below, folder) for folder in below}
    found, seen = [], set()
    for folder in below:
        if folder in reach[folder] and folder not in seen:
            seen |= {other for other in reach[folder] if folder in reach[other]}
            found.append(way_round(below, folder))
    return found


def reachable(below, folder):
    seen, rest = set(), list(below[folder])
    while rest:
        target = rest.pop()
        if target not in seen:
            seen.add(target)
            rest += below[target]
    return seen


def way_round(below, folder):
    ways, seen = [[folder]], set()
    for way in ways:  # grows while it is walked: breadth first
        for target in below[way[-1]]:
            if target == folder:
                return way + [folder]
            if target not in seen:
                seen.add(target)
                ways.append(way + [target])
    raise AssertionError(f"{folder} is in no circle")


def direct(below):
    """The arrows without those that a longer way stands for."""
    return {folder: [target for target in targets
                     if not any(target in reachable(below, other) for other in targets if other != target)]
            for folder, targets in below.items()}


def floors(below):
    """By folder: 0 where it includes no other, else one more than the highest that it includes."""
    height = {}

    def of(folder):
        if folder not in height:
            height[folder] = max((of(target) + 1 for target in below[folder]), default=0)
        return height[folder]

    for folder in below:
        of(folder)
    return height


def drawing(graph):
    """The graph as text, without circles: every folder stands above all that it includes."""
    below = graph.below()
    height, arrows = floors(below), direct(below)
    width = max(len(folder) for folder in below)
    lines = []
    for folder in sorted(below, key=lambda name: (-height[name], name)):
        lines.append(f"{height[folder]:2}  {folder:{width}}  {', '.join(arrows[folder])}".rstrip())
    return "\n".join(lines)


def svg(graph, path):
    if not shutil.which("dot"):
        sys.exit("error: --svg needs graphviz's dot, which is not installed")
    edges = "\n".join(f'"{folder}" -> "{target}"' for folder, targets in direct(graph.below()).items() for target in targets)
    subprocess.run(["dot", "-Tsvg", "-o", path], input=f"digraph {{ rankdir=TB node [shape=box]\n{edges}\n}}", text=True, check=True)


def section(page, name, text=None):
    """What stands between the marks of a section of the page; with `text`, the page with that in its place."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, found, rest = page.partition(begin)
    inner, closed, after = rest.partition(end)
    if not found or not closed:
        sys.exit(f"error: {PAGE} has no section between {begin.strip()} and {end}")
    return inner if text is None else before + begin + text + end + after


def allowed(page):
    """By row of the table: the names that its folders may include."""
    rows = {}
    for line in section(page, "folders").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 3 and not set(cells[0]) <= {"-"} and cells[0] != "folder":
            rows[cells[0].strip("`")] = [name.strip().strip("`") for name in cells[1].split(",") if name.strip()]
    return rows


def names(pattern, folder):
    return folder == pattern or (pattern.endswith("/*") and folder.startswith(pattern[:-1]))


def row_of(rows, folder):
    """The row that speaks of the folder: its own, else the nearest with a star."""
    return max((row for row in rows if names(row, folder)), key=lambda row: (row == folder, len(row)), default=None)


def complaints(graph, page):
    """A sentence for each thing that the page does not allow."""
    rows, below = allowed(page), graph.below()
    for row in rows:
        if not any(row_of(rows, folder) == row for folder in below):
            yield f"{PAGE} has a row for {row}, but no folder has that name; take the row out"
    for folder in below:
        if row_of(rows, folder) is None:
            yield f"{folder} has no row in the table of {PAGE}; say there what it may include and why"
        if graph.files[folder] > MOST_FILES:
            yield f"{folder} holds {graph.files[folder]} files, more than {MOST_FILES}; split it by what its files are about"
    for (folder, target), places in sorted(graph.arrows.items()):
        row = row_of(rows, folder)
        if row and not any(names(name, target) for name in rows[row]):
            yield f"{places[0]}, but the table of {PAGE} does not let {folder} include {target}; move the code, or add it and say why"
    for way in circles(below):
        steps = "; ".join(graph.arrows[step][0] for step in zip(way, way[1:]))
        yield f"folders include each other: {' -> '.join(way)} ({steps}); move what both need into a folder below"
    if not circles(below) and section(page, "graph") != block(graph):
        yield f"the graph in {PAGE} is not the code's; run scripts/include_graph.py --write"


def block(graph):
    return f"```\n{drawing(graph)}\n```\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--svg", metavar="FILE")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1], help="another checkout")
    options = parser.parse_args()
    graph = Graph(options.root)
    page = options.root / PAGE
    text = page.read_text(encoding="utf-8")
    if options.check:
        found = list(complaints(graph, text))
        for sentence in found:
            print(f"error: {sentence}", file=sys.stderr)
        sys.exit(1 if found else 0)
    for way in circles(graph.below()):
        print(f"a circle, so no graph: {' -> '.join(way)}")
    if circles(graph.below()):
        sys.exit(1)
    if options.write:
        page.write_text(section(text, "graph", block(graph)), encoding="utf-8")
    elif options.svg:
        svg(graph, options.svg)
    else:
        print(drawing(graph))


if __name__ == "__main__":
    main()
