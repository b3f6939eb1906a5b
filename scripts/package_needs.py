#!/usr/bin/env python3
"""What the programs and libraries of a package need of the machine that they come to.

    package_needs.py TREE             refuses a need that Debian 12 without its development packages does not meet
    package_needs.py --bundle TREE    the files of this machine that TREE/bin needs and such a machine lacks, one a line

Reads the dynamic sections (readelf), not this machine's libraries, which may have more.
"""

import re
import subprocess
import sys
from pathlib import Path

# Of every Linux with the GNU C library and C++ programs: never bundled, since what is loaded later must find the machine's own.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "ld-linux-x86-64.so.2", "libstdc++.so.6", "libgcc_s.so.1"}
# What a library that is loaded on demand, and only then, may need beside.
ON_DEMAND = {"libDSCommMpi.so": {"libmpi.so.40"}, "libds-cuda.so": {"libcublasLt.so.13", "libcudnn.so.9", "libnccl.so.2"}}
# The newest symbols that Debian 12's libraries have; manylinux_2_36, the wheel's tag, says the same.
NEWEST = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}


def binaries(tree):
    return [path for folder in ("bin", "lib") for path in sorted((tree / folder).glob("*")) if path.read_bytes()[:4] == b"\x7fELF"]


def needed(binary):
    """(names of libraries, [(SYMBOLS, version)]) of its dynamic section."""
    text = subprocess.check_output(["readelf", "--wide", "-d", "-V", binary], text=True)
    versions = re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI|GCC)_([\d.]+) ", text)
    return set(re.findall(r"\(NEEDED\) +Shared library: \[(.+)\]", text)), [(kind, tuple(map(int, v.split(".")))) for kind, v in versions]


def unmet(tree):
    """Sentences, one for each need that is not met."""
    there = {path.name for path in (tree / "lib").iterdir()} | SYSTEM
    for binary in binaries(tree):
        names, versions = needed(binary)
        for name in sorted(names - there - ON_DEMAND.get(binary.name, set())):
            yield f"{binary.name} needs {name}, which is neither in lib nor on every machine"
        for kind, version in sorted(set(versions)):
            if version > NEWEST[kind]:
                yield f"{binary.name} needs {kind}_{'.'.join(map(str, version))}, Debian 12 has {'.'.join(map(str, NEWEST[kind]))}"


def to_bundle(tree):
    """Paths of what the programs load, found by the loader, except for what every machine has."""
    text = "".join(subprocess.check_output(["ldd", program], text=True) for program in sorted((tree / "bin").iterdir()))
    return sorted({path for name, path in re.findall(r"(\S+) => (/\S+)", text) if name not in SYSTEM})


def main():
    tree = Path(sys.argv[-1])
    if sys.argv[1] == "--bundle":
        return print(*to_bundle(tree), sep="\n")
    problems = list(unmet(tree))
    if problems:
        sys.exit("\n".join(f"error: {problem}" for problem in problems))


if __name__ == "__main__":
    main()
