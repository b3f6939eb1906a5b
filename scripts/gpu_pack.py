#!/usr/bin/env python3
"""gpu_pack.py FILE --bin TOOL... --lib LIBRARY... --cases FOLDER --plans FOLDER: the archive of scripts/pack_gpu.sh, of what was built.

Holds each file once, stripped; the libraries that such a machine may lack, too. The same files give the same bytes. Prints the largest files,
and refuses an archive above the limit.
"""

import argparse
import gzip
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 44 << 20
# Of every machine with a GPU and PyTorch: the C and C++ libraries, the driver's and NVIDIA's.
THERE = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libcuda|libcublas.*|libcudnn.*|libnccl|ld-linux.*)\.so")


def needed(files):
    """The libraries that the loader finds for `files`."""
    listed = subprocess.run(["ldd", *files], capture_output=True, text=True, check=True).stdout
    found = {Path(line.split("=> ")[1].split(" (")[0]) for line in listed.splitlines() if "=> /" in line}
    return sorted(path for path in found if not THERE.match(path.name))


def fill(pack, args):
    for name, files in (("bin", args.bin), ("lib", args.lib)):
        (pack / name).mkdir(parents=True)
        for file in files:
            shutil.copy(file, pack / name)
    built = [*(pack / "bin").iterdir(), *(pack / "lib").iterdir()]
    for library in needed(built):
        if not (pack / "lib" / library.name).exists():
            shutil.copy(library, pack / "lib")
    subprocess.run(["strip", "--strip-unneeded", *(pack / "bin").iterdir(), *(pack / "lib").iterdir()], check=True)
    shutil.copytree(args.cases, pack / "cases")
    shutil.copytree(args.plans, pack / "bench")
    (pack / "scripts").mkdir()
    for file in (*ROOT.glob("scripts/gpu_*"), ROOT / "scripts/test_gpu.sh"):
        shutil.copy(file, pack / "scripts")
    for name in ("gpu_step.py", "rounds.py"):
        shutil.copy(ROOT / "bench" / name, pack / "bench")


def write(pack, file):
    """An archive that says nothing of who made it, or when."""
    def plain(member):
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        member.mode = 0o755 if member.mode & 0o100 else 0o644
        return member
    with open(file, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=9, filename="", mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for path in sorted(pack.rglob("*")):
                archive.add(path, f"gpu-pack/{path.relative_to(pack)}", recursive=False, filter=plain)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--bin", type=Path, nargs="+", required=True, help="ds-run and tests")
    parser.add_argument("--lib", type=Path, nargs="+", required=True, help="libds-cuda.so")
    parser.add_argument("--cases", type=Path, required=True, help="what gpu_cases.py made")
    parser.add_argument("--plans", type=Path, required=True, help="what gpu_plans.sh made")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pack = Path(folder) / "gpu-pack"
        fill(pack, args)
        write(pack, args.file)
        sizes = sorted(((path.stat().st_size, path.relative_to(pack)) for path in pack.rglob("*") if path.is_file()), reverse=True)
    for size, path in sizes[:12]:
        print(f"{size / 2**20:8.1f} MiB  {path}")
    size = args.file.stat().st_size
    print(f"{args.file}: {size} bytes ({size / 2**20:.1f} MiB), {sum(one for one, _ in sizes) / 2**20:.0f} MiB in {len(sizes)} files unpacked")
    if size > LIMIT:
        sys.exit(f"error: {args.file} has {size} bytes, and at most {LIMIT} are to travel; leave out cases")


if __name__ == "__main__":
    main()
