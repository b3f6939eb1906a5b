#!/usr/bin/env python3
"""ptxas.py [FILE.cu...]: what ptxas makes of our own kernels for compute capability 9.0, and whether that is good enough.

Fails where a kernel needs more registers than its largest block has, where a hot kernel spills registers to memory or an instance of it is
alone on its multiprocessor, and, for all files, where docs/ptxas.md says otherwise; --update writes it. Ends with 77 where there is no nvcc 13."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "ptxas.md"
REGISTERS = 65536  # of a multiprocessor, and so of a block
THREADS, BLOCKS, SHARED = 2048, 32, 227 << 10  # of a multiprocessor of compute capability 9.0; each block takes 1 KiB of its shared memory besides its own
# Those that a step of a language model spends its time in may not spill: by family. The others are for float64 or are oracles of a library's.
HOT = ("clip", "elementwise", "index", "loss", "matmul", "movement", "norm", "random", "reduce", "optimizer/adamw", "optimizer/lion", "optimizer/sgd")


def nvcc():
    """Its path and release, e.g. "13.0"; None without one of 13."""
    found = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not Path(found).exists():
        return None, ""
    release = re.search(r"release (\d+\.\d+)", subprocess.run([found, "--version"], text=True, capture_output=True).stdout)
    return (found, release.group(1)) if release and release.group(1).startswith("13.") else (None, "")


def compile_one(tool, source, folder):
    """The log of ptxas for one file, compiled as cmake/CUDA.cmake does."""
    flags = ["--fmad=false"] if "// Compiled with --fmad=false" in source.read_text() or "update.cuh" in source.read_text() else []
    cache = [shutil.which("ccache")] if shutil.which("ccache") else []
    command = [tool, "-std=c++20", "-arch=sm_90a", "-O2", *flags, "-I", str(ROOT), "-Xptxas", "-v", "-c", str(source),
               "-o", str(Path(folder) / f"{source.parent.name}-{source.stem}.o")]
    done = subprocess.run([*cache, *command], text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"error: ptxas.py: nvcc fails on {source}:\n{done.stderr[-3000:]}")
    return done.stderr


def plain(name):
    """layerNormKernel of a demangled name."""
    name = re.sub(r"\((?:\w+::)*\w+\)(?=\d)", "", name)  # the type of an argument that is an enumerator
    head = name.split("(")[0] if "(anonymous namespace)" not in name else name.replace("(anonymous namespace)::", "").split("(")[0]
    head = re.sub(r"^void ", "", head)
    while "<" in head:
        head, before = re.sub(r"<[^<>]*>", "", head), head
        if head == before:
            break
    return head.rsplit("::", 1)[-1].strip()


def kernels_of(log):
    """(name, registers, bytes of stores and loads that spill, bytes of shared memory) of each instance."""
    mangled = re.findall(r"Compiling entry function '(\w+)'", log)
    names = subprocess.run(["c++filt", *mangled], text=True, capture_output=True).stdout.splitlines() if mangled else []
    rows = []
    for entry, name in zip(mangled, names):
        body = log.split(f"Compiling entry function '{entry}'", 1)[1].split("Compiling entry function", 1)[0]
        spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", body)  # of the kernel and what it calls
        used = re.search(r"Used (\d+) registers(.*)", body)
        shared = re.search(r"(\d+) bytes smem", used.group(2))
        rows.append((plain(name), int(used.group(1)), sum(int(bytes_) for pair in spills for bytes_ in pair), int(shared.group(1)) if shared else 0))
    return rows


def largest_blocks(source):
    """{kernel: most threads of a block}: of __launch_bounds__ in the file and its .cuh, 1,024 without."""
    texts = [source.read_text()] + [(ROOT / name).read_text() for name in re.findall(r'#include "(kernels/\w+/\w+\.cuh)"', source.read_text())]
    known = {"blockThreads": 256, "edge *edge": 256, "attentionWarps *warpThreads": 128, "channelThreads": 512, "normThreads": 512,
             "lambThreads": 1024, "normRowThreads": 512, "warpThreads *piecesThreads": 1024, "lossThreads": 256, "mostRowThreads": 512, "allRowsThreads": 1024}
    bounds = {}
    for text in texts:
        for bound, name in re.findall(r"__global__ void\s+(?:__launch_bounds__\(([^)]*)\))?\s*(\w+)\(", text):
            threads = bound.split(",")[0]
            bounds[name] = (known.get(threads) or int(threads)) if bound else 1024
    return bounds


def resident(block, registers, shared):
    """Blocks of one instance that a multiprocessor runs at once. A warp takes registers in steps of 8 a thread."""
    return min(BLOCKS, THREADS // block, REGISTERS // (block * -(-registers // 8) * 8), SHARED // (shared + 1024))


def is_hot(source):
    return source.parent.name in HOT or f"{source.parent.name}/{source.stem}" in HOT


def table(sources, folder, tool):
    lines, wrong = [], []
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        logs = list(pool.map(lambda source: compile_one(tool, source, folder), sources))
    for source, log in zip(sources, logs):
        bounds, merged = largest_blocks(source), {}
        for name, *figures in kernels_of(log):
            merged.setdefault(name, []).append(figures)
        for name, instances in sorted(merged.items()):
            block, path = bounds.get(name, 1024), f"kernels/{source.parent.name}/{source.name}"
            registers, spilled, shared = map(max, zip(*instances))
            fewest = min(resident(block, registers, shared) for registers, _, shared in instances)
            lines.append(f"| `{path}` | `{name}` | {len(instances)} | {block} | {registers} | {spilled} | {shared} | {fewest} |")
            if registers * block > REGISTERS:
                wrong.append(f"{path}: {name} needs {registers} registers for each of {block} threads, but a block has {REGISTERS}")
            if spilled and is_hot(source):
                wrong.append(f"{path}: {name} spills {spilled} bytes of registers, and it is hot")
            if fewest == 1 and is_hot(source):
                wrong.append(f"{path}: {name} with {registers} registers for each of {block} threads is alone on a multiprocessor, and it is hot")
    return lines, wrong


HEAD = """# Our own kernels by ptxas

`scripts/ptxas.py --update` writes this page: nvcc 13.0, sm_90a, the flags of the build. A file has a kernel in several instances (types); each column has its largest value.
A block is the largest that the kernel is launched with (`__launch_bounds__`). The last column is how many blocks of it a multiprocessor has room for, of the instance with the fewest.
Registers times threads are at most 65,536. Hot kernels spill nothing and two blocks fit, so that one loads while the other adds up: `scripts/ptxas.py` fails where that does not hold.
These are the compiler's figures; nothing was measured on a GPU. Those that spill are our own attention, the oracle of cuDNN's, and Adagrad in float64.

| file | kernel | instances | threads of a block | registers of a thread | bytes spilled | bytes of shared memory | blocks at once |
|---|---|---|---|---|---|---|---|
"""


def main():
    tool, release = nvcc()
    if tool is None:
        print("skipped: there is no nvcc 13 on PATH nor in /usr/local/cuda/bin")
        return 77
    given = [Path(word).resolve() for word in sys.argv[1:] if not word.startswith("--")]
    sources = given or sorted((ROOT / "kernels").glob("*/*.cu"))
    with tempfile.TemporaryDirectory() as folder:
        lines, wrong = table(sources, folder, tool)
    made = {line.split("`")[1] for line in lines}
    others = [line for line in PAGE.read_text().splitlines() if line.startswith("| `") and line.split("`")[1] not in made] if given else []
    page = HEAD + "\n".join(sorted(lines + others)) + "\n"
    if "--update" in sys.argv:
        PAGE.write_text(page)
    elif not given and f"nvcc {release}," in HEAD and page != PAGE.read_text():  # another nvcc has other figures
        wrong.append("docs/ptxas.md is out of date; run scripts/ptxas.py --update")
    print(f"{len(lines)} kernels of {len(sources)} files: {len(wrong)} too large or out of date")
    for one in wrong:
        print(f"error: {one}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
